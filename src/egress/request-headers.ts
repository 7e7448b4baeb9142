// Selects the headers of a request or a response that are passed on.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Transform } from 'node:stream'

/** Headers of one connection, which are not forwarded (RFC 9110 7.6.1). */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
])

/** What an answer is passed through: its headers and its body. */
export type Through = { text: (value: string) => string; stream: () => Transform }

/** Passes an answer on as it comes; ends the client's connection where it cannot be passed on in full. */
export function passAnswer(
  answered: IncomingMessage,
  response: ServerResponse,
  { client, through = null }: { client: Socket; through?: Through | null },
): void {
  if (!passHead(answered, response, through)) return void client.destroy()
  answered.on('error', () => client.destroy())
  const body = through === null ? answered : answered.pipe(through.stream())
  body.pipe(response)
}

/** Returns false for one that Node reads and does not send, such as a status of 99. */
function passHead(answered: IncomingMessage, response: ServerResponse, through: Through | null): boolean {
  try {
    const headers = passedHeaders(answered).map(([name, value]) => [name, through?.text(value) ?? value])
    response.writeHead(answered.statusCode ?? 502, answered.statusMessage, headers)
    return true
  } catch {
    return false
  }
}

export function passedHeaders({ rawHeaders, headers }: IncomingMessage): [string, string][] {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase())
  return pairs(rawHeaders).filter(([name]) => {
    const lower = name.toLowerCase()
    return !hopByHop.has(lower) && (lower === 'host' || !named.includes(lower))
  })
}

export function pairs(raw: string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, at) => [raw[2 * at] ?? '', raw[2 * at + 1] ?? ''])
}
