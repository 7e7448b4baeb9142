// Who is at the other end of a connection, and which name it asked for in its ClientHello.

import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

/** What the greeting of TLS named; null when it named nobody. */
export function serverNameOf(socket: TLSSocket): string | null {
  // Node's types leave it out on the server's side. `false`: the greeting named none.
  const name: unknown = Reflect.get(socket, 'servername')
  return typeof name === 'string' && name !== '' ? name : null
}

export function peerAddress(socket: Pick<Socket, 'remoteAddress'>): string {
  const address = socket.remoteAddress ?? ''
  return address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address
}

/** Who shares one allowance: an address, or the /64 that a single visitor of IPv6 has to himself. */
export function peerOf(address: string): string {
  if (!address.includes(':')) return address
  const [before = '', after = ''] = address.split('::')
  const groups = before === '' ? [] : before.split(':')
  const tail = after === '' ? [] : after.split(':')
  const missing = address.includes('::') ? Math.max(0, 8 - groups.length - tail.length) : 0
  return [...groups, ...Array<string>(missing).fill('0'), ...tail].slice(0, 4).join(':')
}
