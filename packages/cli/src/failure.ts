// The error of a command: a sentence, the next command to type, and the exit code.

import { BerthError } from '@berth/sdk'
import { UsageError } from './args.ts'

export const exitCodes = {
  failed: 1,
  usage: 2,
  notSignedIn: 4,
  timedOut: 124,
  /** Of exec, run and db, whose own codes are those of the command. */
  ownFailure: 125,
  interrupted: 130,
} as const

export class Failure extends Error {
  readonly hint: string | null
  readonly exitCode: number

  constructor(
    message: string,
    { hint = null, exitCode = 1 }: { hint?: string | null; exitCode?: number } = {},
  ) {
    super(message)
    this.hint = hint
    this.exitCode = exitCode
  }
}

type Told = { message: string; hint: string | null; exitCode: number; requestId?: string | null }

/** `command`: its name, for the hint. */
export function toldOf(error: unknown, command: string): Told {
  if (error instanceof Failure) return error
  if (error instanceof UsageError)
    return { message: error.message, hint: `berth ${command} --help`, exitCode: exitCodes.usage }
  if (error instanceof BerthError) return toldOfService(error)
  const { name, message } = (error ?? {}) as Error
  if (name === 'AbortError') return { message: 'Interrupted.', hint: null, exitCode: exitCodes.interrupted }
  return {
    message: `${message ?? String(error)} This is a fault of berth itself.`,
    hint: null,
    exitCode: exitCodes.failed,
  }
}

function toldOfService({ code, message, requestId, status }: BerthError): Told {
  const told = { message, hint: hints[code] ?? null, exitCode: exitCodes.failed as number, requestId }
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
  not_configured: 'berth login --url https://YOUR-BERTH',
  unauthorized: 'berth login',
  connection_failed: 'berth profiles, which lists where you are signed in',
  quota_exceeded: 'berth quota',
  policy_violation: 'berth quota',
  payment_required: 'berth quota',
}
