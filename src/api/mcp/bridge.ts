// Converts Node's request to the web request that the protocol library takes, and its response back.

import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { MINUTE } from '../../lib/clock.ts'

/** The answer to send. Its body comes in pieces, over as long as the work takes. */
export type WebAnswer = {
  status: number
  headers: Record<string, string>
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array> | null
}

/** A client that reads nothing of its answer for this long is disconnected. */
const STALLED_MS = MINUTE

const passedOn = [
  'content-type',
  'accept',
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
  'mcp-session-id',
] as const

/** Without a body, which has already been read. The URL is the service's own, whatever host the request names. */
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

/** Waits until the answer is complete. */
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

/** Yields the same body, then runs `last` before the end is visible, also when the body fails. */
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

/** Writes the whole body as fast as the client reads. Returns early, without an error, if the client disconnects. */
export async function sendAnswer(
  response: ServerResponse,
  { status, headers, body }: WebAnswer,
): Promise<void> {
  if (!response.headersSent && !response.destroyed) {
    response.writeHead(status, { ...headers, 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
    response.flushHeaders()
    response.socket?.setTimeout(STALLED_MS)
  }
  // The body is read to its end even after a disconnect, because what follows its end must run.
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
