// Connects to the addresses of an allowed name, one after the other. They have been looked at (names.ts), and the
// firewall keeps this process's group away from private ones all the same.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Reads } from './reads.ts'

const ATTEMPT_MS = 5000
const ATTEMPTS = 3
/** A host that vanishes without a word. */
const KEEP_ALIVE_AFTER_MS = 60_000

/** Returns null if none answers. With `reads`, the connection is read by them once they begin. */
export async function dialName(
  addresses: readonly string[],
  port: number,
  gone: AbortSignal,
  reads?: Reads,
): Promise<Socket | null> {
  for (const address of addresses.slice(0, ATTEMPTS)) {
    if (gone.aborted) return null
    const to = { host: address, port, allowHalfOpen: true, noDelay: true }
    const socket = connect(reads ? { ...to, onread: reads.onread } : to)
    if (reads) socket.pause()
    try {
      await once(socket, 'connect', { signal: AbortSignal.any([gone, AbortSignal.timeout(ATTEMPT_MS)]) })
      socket.setKeepAlive(true, KEEP_ALIVE_AFTER_MS)
      return socket
    } catch {
      socket.on('error', () => {})
      socket.destroy()
    }
  }
  return null
}
