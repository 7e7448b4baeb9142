// A caller as a sane SDK is one: what was refused because a part of the service is away is sent again when
// the answer says, and what got no answer at all is the caller's to decide.

import { setTimeout as delay } from 'node:timers/promises'
import type { Answer, Berth } from './berth.ts'

export type Call = {
  method: string
  path: string
  /** JSON, or the bytes of a file. */
  body?: unknown
  headers?: Record<string, string>
}

export type Reply<T> = Answer<T> & {
  /** How often it was sent. */
  sent: number
  /** An earlier sending got no answer, or one that does not say what was done: it may have been done twice. */
  unsure: boolean
}

const PAUSE_MS = 100
const GIVE_UP_AFTER_MS = 60_000
/** Longer than anything here may take. */
const ANSWER_WITHIN_MS = 90_000

/**
 * Sends until there is an answer other than "away for a moment". Only for calls that may be repeated. Throws
 * the last trouble once that has gone on for a minute.
 */
export async function callPatiently<T>(
  berth: Berth,
  call: Call,
  giveUpMs = GIVE_UP_AFTER_MS,
): Promise<Reply<T>> {
  const deadline = Date.now() + giveUpMs
  let unsure = false
  for (let sent = 1; ; sent++) {
    const outcome = await send<T>(berth, call)
    if (outcome.kind === 'answered' && !isAway(outcome.status)) return { ...outcome, sent, unsure }
    if (outcome.kind !== 'refused') unsure = true
    if (Date.now() > deadline) throw new Error(`${call.method} ${call.path}: ${JSON.stringify(outcome)}`)
    await delay((outcome.kind === 'answered' ? outcome.retryAfterMs : null) ?? PAUSE_MS)
  }
}

export type Outcome<T> =
  | { kind: 'answered'; status: number; body: T; retryAfterMs: number | null }
  /** Nobody listened, so nothing was done. */
  | { kind: 'refused' }
  /** The connection broke: nobody knows what was done. */
  | { kind: 'broken'; why: string }

/** Once. */
export async function send<T>(berth: Berth, { method, path, body, headers }: Call): Promise<Outcome<T>> {
  const { baseUrl, apiKey } = berth.credentials
  const isBytes = body instanceof Uint8Array
  try {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(body === undefined
          ? {}
          : { 'content-type': isBytes ? 'application/octet-stream' : 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isBytes ? new Uint8Array(body) : JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    })
    const retryAfter = response.headers.get('retry-after')
    const retryAfterMs = retryAfter === null ? null : Number(retryAfter) * 1000
    return { kind: 'answered', status: response.status, body: (await response.json()) as T, retryAfterMs }
  } catch (error) {
    if (codeOf(error) === 'ECONNREFUSED') return { kind: 'refused' }
    return { kind: 'broken', why: `${codeOf(error)} ${String(error)}` }
  }
}

/** A part of the service is away, or a part it needs was on the way. */
function isAway(status: number): boolean {
  return status === 503
}

function codeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error && 'code' in cause ? String(cause.code) : ''
}
