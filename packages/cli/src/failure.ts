// The error of a command: a sentence, the next command to type, a code for programs, and the exit code.

import { BerthError, type BerthErrorCode } from '@berth/sdk'
import { UsageError } from './args.ts'
import { clean, note, paint } from './output.ts'

export const exitCodes = {
  failed: 1,
  usage: 2,
  notSignedIn: 4,
  timedOut: 124,
  /** Of exec, run and db, whose own codes are those of the command. */
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
  const ownsCodes = ['exec', 'shell', 'run', 'db'].includes(command)
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
    return { message: error.message, hint: help, exitCode: exitCodes.usage, code: 'usage' }
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
  const told = { message, hint: hints[code] ?? null, exitCode: exitCodes.failed as number, code, requestId }
  // The service looked at what was typed and refused it.
  if (code === 'validation') Object.assign(told, { hint: help, exitCode: exitCodes.usage })
  if (code === 'not_configured' || code === 'unauthorized') told.exitCode = exitCodes.notSignedIn
  // What is wrong with a URL or a key that is there, the library says.
  if (code === 'not_configured' && message.startsWith('Set ')) told.message = 'You are signed in nowhere.'
  // Its message is for programs that write the header themselves.
  if (code === 'unauthorized' && message.startsWith('Send a valid API key'))
    told.message = 'The service does not know this API key.'
  if (code === 'timed_out') told.exitCode = exitCodes.timedOut
  if (status === 429) told.hint = 'the same again in a minute'
  return told
}

const hints: Partial<Record<BerthError['code'], string>> = {
  not_configured: 'berth login https://YOUR-BERTH',
  unauthorized: 'berth login',
  connection_failed: 'berth profiles, which lists where you are signed in',
  quota_exceeded: 'berth quota',
  policy_violation: 'berth quota',
  payment_required: 'berth quota',
}
