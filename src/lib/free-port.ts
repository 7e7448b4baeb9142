// A port that is free now and still will be when it is listened on a moment later.

import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below those that Linux gives to outgoing connections, which come at any time. */
const FIRST = 15_000
const COUNT = 17_000
const MAX_TRIES = 50

// Each is offered once in a while only: whoever was given one may not listen on it yet.
let offset = randomInt(COUNT)

/** Throws what listening on the host fails with. */
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

/** Listens for an instant; throws what that fails with. */
export async function tryListening(host: string, port: number): Promise<void> {
  const server = createServer().listen(port, host)
  await once(server, 'listening')
  server.close()
  await once(server, 'close')
}

export function isPortTaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
}
