// From Node's request to the web's, which the protocol's library speaks, and back.

import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { MINUTE } from '../../lib/clock.ts'

/** What is to be answered: a body comes piece by piece, and may take as long as the work. */
export type WebAnswer = {
  status: number
  headers: Record<string, string>
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array> | null
}

/** A caller that takes nothing of its answer for this long is gone. */
const STALLED_MS = MINUTE

const passedOn = [
  'content-type',
  'accept',
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
  'mcp-session-id',
] as const

/** Without a body, which has been read. The URL is ours, whatever host the request names. */
export function toWebRequest(
  { headers }: IncomingMessage,
  { url, signal }: { url: string; signal: AbortSignal },
): Request {
  const kept = passedOn.flatMap((name): [string, string][] => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value]] : []
  })
  return new Request(url, { method: 'POST', headers: kept, signal })
}

export function toAnswer(response: Response): WebAnswer {
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: response.body,
  }
}

/** An answer that is complete before it leaves. */
export async function readWhole(answer: WebAnswer): Promise<WebAnswer> {
  if (answer.body === null) return answer
  const chunks: Uint8Array[] = []
  for await (const chunk of answer.body) chunks.push(chunk)
  return { ...answer, body: chunks }
}

export async function readText(answer: WebAnswer): Promise<{ type: string; text: string }> {
  const { body } = await readWhole(answer)
  const chunks: Uint8Array[] = []
  for await (const chunk of body ?? []) chunks.push(chunk)
  return { type: answer.headers['content-type'] ?? '', text: Buffer.concat(chunks).toString() }
}

/** The same, and then what is to be done before its end is seen, however it comes to an end. */
export async function* followedBy(
  body: NonNullable<WebAnswer['body']>,
  finish: () => Promise<void>,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } finally {
    await finish()
  }
}

/** Writes all of it, as fast as the caller reads. Ends early, without a fault, when the caller has gone. */
export async function sendAnswer(
  response: ServerResponse,
  { status, headers, body }: WebAnswer,
): Promise<void> {
  if (!response.headersSent && !response.destroyed) {
    response.writeHead(status, { ...headers, 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
    response.flushHeaders()
    response.socket?.setTimeout(STALLED_MS)
  }
  // All of it is taken, also when nobody reads it: what stands behind its end is to be done in any case.
  for await (const chunk of body ?? []) await write(response, chunk)
  response.end()
}

async function write(response: ServerResponse, chunk: Uint8Array): Promise<void> {
  if (response.destroyed || response.write(chunk)) return
  const settled = new AbortController()
  const options = { signal: settled.signal }
  try {
    await Promise.race([once(response, 'drain', options), once(response, 'close', options)])
  } finally {
    settled.abort()
  }
}
