// What a client is told that is not let through, where its protocol has room for a sentence.

import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'

/** `message` is for the unit: it says nothing of this host. */
export type Refused = { status: number; code: string; message: string }

export function refuse(response: ServerResponse, refused: Refused): void {
  response.writeHead(refused.status, { 'content-type': 'application/json', connection: 'close' })
  response.end(bodyOf(refused))
}

/** For a request to upgrade, whose connection is no longer read as HTTP. */
export function refuseUpgrade(socket: Duplex, refused: Refused): void {
  const body = bodyOf(refused)
  const lines = [
    `HTTP/1.1 ${refused.status} ${STATUS_CODES[refused.status] ?? 'Refused'}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`)
}

/** Of a host that does not answer. */
export function unreachable(host: string): Refused {
  return { status: 502, code: 'host_unreachable', message: `${host} did not answer.` }
}

/** Of a request that has a secret which is for other requests. `name`: a person's text. */
export function notForSecret(name: string): Refused {
  const message = `The secret ${name} is not for this method and path: its owner decides which requests it is for.`
  return { status: 403, code: 'secret_refused', message }
}

/** Of a request for another host than its connection. */
export function misdirected(host: string): Refused {
  const message = `This connection is to ${host}: a request on it must have that Host, and a path as its target.`
  return { status: 421, code: 'egress_refused', message }
}

export function bodyOf({ code, message }: Refused): string {
  return `${JSON.stringify({ error: { code, message } })}\n`
}
