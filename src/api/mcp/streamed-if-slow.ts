// A call that ends soon gets a plain response with its own status. A slower call gets a stream of events with
// comments, so that neither the client nor a proxy takes the silence for a lost connection. Once the stream has
// begun, its status cannot change.

import type { Clock } from '../../lib/clock.ts'
import { readText, type WebAnswer } from './bridge.ts'

/** Clients and proxies give up after a minute of silence, the strictest after half of one. */
export const SILENCE_MS = 15_000

const COMMENT = Buffer.from(': keepalive\n\n')

export async function streamedIfSlow(clock: Clock, pending: Promise<WebAnswer>): Promise<WebAnswer> {
  const soon = await withinSilence(clock, pending)
  if (soon !== null) return soon
  return { status: 200, headers: { 'content-type': 'text/event-stream' }, body: eventsOf(clock, pending) }
}

async function* eventsOf(clock: Clock, pending: Promise<WebAnswer>): AsyncGenerator<Uint8Array> {
  let answer: WebAnswer | null = null
  while (answer === null) {
    yield COMMENT
    answer = await withinSilence(clock, pending)
  }
  if (isEventStream(answer)) {
    yield* answer.body ?? []
    return
  }
  const { text } = await readText(answer)
  if (text !== '') yield Buffer.from(`event: message\ndata: ${text}\n\n`)
}

/** Null if the answer is not there in time. */
async function withinSilence(clock: Clock, pending: Promise<WebAnswer>): Promise<WebAnswer | null> {
  const settled = new AbortController()
  const late = clock.sleep(SILENCE_MS, settled.signal).then(
    () => null,
    () => null,
  )
  try {
    return await Promise.race([pending, late])
  } finally {
    settled.abort()
  }
}

export function isEventStream({ headers }: WebAnswer): boolean {
  return (headers['content-type'] ?? '').startsWith('text/event-stream')
}
