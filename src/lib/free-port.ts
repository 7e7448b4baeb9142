// Finds a port that is free now and very likely still free a moment later.

import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { errorCodeOf } from './error-code.ts'

/** Below the range of outgoing connections, which can take a port at any time. */
const FIRST = 15_000
const COUNT = 17_000
const MAX_TRIES = 50

// Ports are offered in turn, because the last one offered may not be in use yet.
let offset = randomInt(COUNT)

/** Throws the error of listening on the host. */
export async function freePort(host: string): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    offset = (offset + 1) % COUNT
    const port = FIRST + offset
    try {
      await tryListening(host, port)
      return port
    } catch (error) {
      if (!isPortTaken(error) || tries === MAX_TRIES) throw error
    }
  }
}

/** Listens for an instant; throws the error if that fails. */
export async function tryListening(host: string, port: number): Promise<void> {
  const server = createServer().listen(port, host)
  await once(server, 'listening')
  server.close()
  await once(server, 'close')
}

export function isPortTaken(error: unknown): boolean {
  return errorCodeOf(error) === 'EADDRINUSE'
}
