// The error of a command: a sentence, the next command to type, a code for programs, and the exit code.

import { BerthError, type BerthErrorCode } from '@berth/sdk'
import { UsageError } from './args.ts'
import { clean, note, paint } from './output.ts'

export const exitCodes = {
  failed: 1,
  usage: 2,
  notSignedIn: 4,
  /** Try again later: EX_TEMPFAIL of sysexits.h. */
  noRoom: 75,
  timedOut: 124,
  /** Of exec, run, db and agents spawn, whose own codes are those of the command. */
  ownFailure: 125,
  interrupted: 130,
} as const

/** Codes of the service and the SDK, and those of this program. */
type Code = BerthErrorCode | 'failed' | 'usage' | 'interrupted'

export class Failure extends Error {
  readonly hint: string | null
  readonly exitCode: number
  readonly code: Code

  constructor(
    message: string,
    {
      hint = null,
      exitCode = 1,
      code = 'failed',
    }: { hint?: string | null; exitCode?: number; code?: Code } = {},
  ) {
    super(message)
    this.hint = hint
    this.exitCode = exitCode
    this.code = code
  }
}

type Told = { message: string; hint: string | null; exitCode: number; code: Code; requestId?: string | null }

/** Prints it on standard error, and answers the code to end with. */
export function tell(error: unknown, command: string, isJson: boolean): number {
  const { exitCode, ...told } = toldOf(error, command)
  if (isJson) note(JSON.stringify({ error: told }))
  else {
    note(`${paint('error:', 'red', process.stderr)} ${clean(told.message)}`)
    if (told.hint !== null) note(`${paint('try:', 'dim', process.stderr)} ${clean(told.hint)}`)
  }
  const ownsCodes = ['exec', 'shell', 'run', 'db', 'agents spawn'].includes(command)
  return ownsCodes && exitCode === exitCodes.failed ? exitCodes.ownFailure : exitCode
}

/** `command`: its name, for the hint. */
function toldOf(error: unknown, command: string): Told {
  if (error instanceof Failure) {
    const { message, hint, exitCode, code } = error
    return { message, hint, exitCode, code }
  }
  const help = `berth ${command} --help`
  if (error instanceof UsageError)
    return { message: error.message, hint: error.hint ?? help, exitCode: exitCodes.usage, code: 'usage' }
  if (error instanceof BerthError) {
    const told = toldOfService(error, help)
    const left = makingCommands.includes(command) ? unitLeftBy(error) : null
    return left === null ? told : { ...told, hint: `berth rm ${left}, which removes the unit that failed` }
  }
  const { name, message } = (error ?? {}) as Error
  if (name === 'AbortError')
    return { message: 'Interrupted.', hint: null, exitCode: exitCodes.interrupted, code: 'interrupted' }
  return {
    message: `${message ?? String(error)} This is a fault of berth itself.`,
    hint: null,
    exitCode: exitCodes.failed,
    code: 'internal',
  }
}

const makingCommands = ['run', 'fork', 'recipe run', 'stack fork']

/** The id of the unit that could not be made, which is kept for its log. */
export function unitLeftBy({ details }: BerthError): string | null {
  const { unitId } = (details ?? {}) as { unitId?: unknown }
  return typeof unitId === 'string' ? unitId : null
}

function toldOfService({ code, message, requestId, status }: BerthError, help: string): Told {
  const [said, way] = inCommands(message)
  const told = {
    message: said,
    hint: way ?? hints[code] ?? null,
    exitCode: exitCodes.failed as number,
    code,
    requestId,
  }
  // The service looked at what was typed and refused it.
  if (code === 'validation') Object.assign(told, { hint: help, exitCode: exitCodes.usage })
  if (code === 'not_configured' || code === 'unauthorized') told.exitCode = exitCodes.notSignedIn
  // What is wrong with a URL or a key that is there, the library says.
  if (code === 'not_configured' && message.startsWith('Set ')) told.message = 'You are signed in nowhere.'
  // What the library says besides is for programs.
  const [whole, first] = /^(.* API key\.) Make one /.exec(said) ?? []
  if (code === 'unauthorized' && whole !== undefined) told.message = first ?? said
  if (code === 'timed_out') told.exitCode = exitCodes.timedOut
  if (status === 429) told.hint = 'the same again in a minute'
  return told
}

/** Calls that the service names as the way out, and the commands that make them. */
const commandsOfCalls: [call: RegExp, command: string][] = [
  [/POST \/v1\/units\/([\w{}]+)\/start/, 'berth start'],
  [/POST \/v1\/units\/([\w{}]+)\/expose/, 'berth url'],
  [/POST \/v1\/units\/([\w{}]+)\/sleep/, 'berth sleep'],
  [/POST \/v1\/units\/([\w{}]+)\/exec/, 'berth exec'],
  [/GET \/v1\/units\/([\w{}]+)\/logs/, 'berth logs'],
  [/GET \/v1\/units\/([\w{}]+)/, 'berth inspect'],
  [/DELETE \/v1\/units\/([\w{}]+)/, 'berth rm'],
  [/POST \/v1\/stacks\/([\w{}]+)\/fork/, 'berth stack fork'],
  [/GET \/v1\/quota()/, 'berth quota'],
]

/** Fields of a create, as the options that fill them in. */
const optionsOfFields: Record<string, string> = {
  image: 'the image',
  name: '--name',
  stack: '--stack',
  size: '--size',
  ports: '--port',
  env: '--env',
  volume: '--volume',
  sleep: '--sleep',
  metadata: '--metadata',
  timeToLive: '--time-to-live',
  egress: '--egress',
  limit: '--lines',
}

/** A message of the service in the words of this program, and the command that it names, if it names one. */
function inCommands(message: string): [message: string, command: string | null] {
  let command: string | null = null
  let said = message.replace(/^(\w+)(?:\.[\w.]+)?: /, (whole, field: string) => {
    const option = Object.hasOwn(optionsOfFields, field) ? optionsOfFields[field] : undefined
    return option === undefined ? whole : `${option}: `
  })
  for (const [call, typed] of commandsOfCalls)
    said = said.replace(new RegExp(call, 'g'), (_call, id: string) => {
      const named = id === '' ? typed : `${typed} ${id.startsWith('{') ? 'UNIT' : id}`
      command ??= named
      return `\`${named}\``
    })
  return [said, command]
}

const hints: Partial<Record<BerthError['code'], string>> = {
  not_configured: 'berth login https://YOUR-BERTH',
  unauthorized: 'berth login',
  connection_failed: 'berth profiles, which lists where you are signed in',
  quota_exceeded: 'berth quota',
  policy_violation: 'berth quota',
  payment_required: 'berth quota',
}
