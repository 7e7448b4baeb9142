// The kernel delays the acknowledgement of received data by up to 40 ms, to send it along with other data. A client
// without TCP_NODELAY sends its first data only once the end of its handshake is acknowledged, and after a resumed
// handshake the server sends nothing. So it is acknowledged at once (decisions/endpoints.md). Node has no function for
// that.

import koffi from 'koffi'
import type { TLSSocket } from 'node:tls'

const setsockopt = koffi.load('libc.so.6').func('int setsockopt(int, int, int, const int *, unsigned int)')
const IPPROTO_TCP = 6
const TCP_QUICKACK = 12
const INT_BYTES = 4

/** Acknowledges what has been read, once. If that fails, the connection is only slower. */
export function acknowledgeNow(socket: TLSSocket): void {
  const descriptor = descriptorOf(socket)
  if (descriptor !== null) setsockopt(descriptor, IPPROTO_TCP, TCP_QUICKACK, [1], INT_BYTES)
}

/** Returns null if the socket is closed. Node's types leave the handle out. */
function descriptorOf(socket: TLSSocket): number | null {
  const handle: unknown = Reflect.get(socket, '_handle')
  if (typeof handle !== 'object' || handle === null) return null
  const descriptor: unknown = Reflect.get(handle, 'fd')
  return typeof descriptor === 'number' && descriptor >= 0 ? descriptor : null
}
