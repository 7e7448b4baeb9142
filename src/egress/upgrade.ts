// Requests that become another protocol, WebSocket for one.

import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type Mask, masked, maskedText } from './broker/mask.ts'
import { type Refused, refuseUpgrade } from './refused.ts'
import { pairs, passedHeaders } from './request-headers.ts'
import type { Turn } from './shares.ts'
import { splice } from './splice.ts'
import { through } from './through.ts'

/** One that offers HTTP/2, as those of Java and curl do, is answered as if it did not, as any server may. */
export function isUpgrade({ headers: { upgrade } }: IncomingMessage): boolean {
  return upgrade !== undefined && !/\bh2c\b/i.test(upgrade)
}

type Upgrading = {
  socket: Duplex
  /** What the client has sent already. */
  head: Buffer
  refusalFor: (error: Error) => Refused
  turn: Turn
  mask?: Mask | null
}

/** Sends a request on, and its answer back: bytes both ways once the host upgrades, and any other answer as it comes. */
export function passUpgrade(
  outgoing: ClientRequest,
  { socket, head, refusalFor, turn, mask = null }: Upgrading,
): void {
  let isAnswered = false
  outgoing.on('error', (error) => {
    if (isAnswered) socket.destroy()
    else refuseUpgrade(socket, refusalFor(error))
  })
  const answer = (answered: IncomingMessage, headers: [string, string][], last: string) => {
    isAnswered = true
    const lines = masked(headers, mask).map(([name, value]) => `${name}: ${value}\r\n`)
    const status = `${answered.statusCode} ${maskedText(answered.statusMessage ?? '', mask)}`
    socket.write(`HTTP/1.1 ${status}\r\n${lines.join('')}${last}\r\n`)
  }
  outgoing.on('response', (answered) => {
    answer(answered, passedHeaders(answered), 'Connection: close\r\n')
    answered.on('error', () => socket.destroy())
    through(mask, answered, turn).pipe(socket)
  })
  outgoing.on('upgrade', (answered, host, first) => {
    answer(answered, pairs(answered.rawHeaders), '')
    if (first.length > 0) host.unshift(first)
    if (head.length > 0) host.write(head)
    splice(socket as Socket, host, { turn, mask })
  })
  outgoing.end()
}
