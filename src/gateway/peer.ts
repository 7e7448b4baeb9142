// The address of a connection's client, and the server name of its ClientHello.

import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

/** Returns the server name (SNI); null if the client sent none. */
export function serverNameOf(socket: TLSSocket): string | null {
  // Node's types leave it out on the server's side. `false`: no name was sent.
  const name: unknown = Reflect.get(socket, 'servername')
  return typeof name === 'string' && name !== '' ? name : null
}

export function peerAddress(socket: Pick<Socket, 'remoteAddress'>): string {
  const address = socket.remoteAddress ?? ''
  return address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address
}

/** Returns the key that shares one limit: an IPv4 address, or an IPv6 /64, which a single visitor may own. */
export function peerOf(address: string): string {
  if (!address.includes(':')) return address
  const [before = '', after = ''] = address.split('::')
  const groups = before === '' ? [] : before.split(':')
  const tail = after === '' ? [] : after.split(':')
  const missing = address.includes('::') ? Math.max(0, 8 - groups.length - tail.length) : 0
  return [...groups, ...Array<string>(missing).fill('0'), ...tail].slice(0, 4).join(':')
}
