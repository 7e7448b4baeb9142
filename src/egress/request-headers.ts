// Selects the headers of a request or a response that are passed on.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Mask, masked, maskedText } from './broker/mask.ts'
import type { Turn } from './shares.ts'
import { through } from './through.ts'

/** Headers of one connection, which are not forwarded (RFC 9110 7.6.1). */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
])

/** Passes an answer on as it comes, but for what the mask covers; ends the client's connection where it cannot be passed on in full. */
export function passAnswer(
  answered: IncomingMessage,
  response: ServerResponse,
  { client, turn, mask = null }: { client: Socket; turn: Turn; mask?: Mask | null },
): void {
  if (!passHead(answered, response, mask)) return void client.destroy()
  answered.on('error', () => client.destroy())
  through(mask, answered, turn).pipe(response)
  // With the first bytes of the body if they are there, and without them if the host says them later.
  setImmediate(() => response.flushHeaders())
}

/** Returns false for one that Node reads and does not send, such as a status of 99. */
function passHead(answered: IncomingMessage, response: ServerResponse, mask: Mask | null): boolean {
  try {
    const headers = masked(passedHeaders(answered), mask)
    response.writeHead(answered.statusCode ?? 502, maskedText(answered.statusMessage ?? '', mask), headers)
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
