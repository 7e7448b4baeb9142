// The keys of TLS tickets that several gateways share, so that a session resumes at whichever its client comes back to. The
// supervisor gives each the same secret, and it is on no disk. Tickets of the day before lead to a full handshake.

import { type Clock, MINUTE } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { runLoop } from '../../lib/loop.ts'
import { advanceTicketSecret, ticketKeysOf, type TicketSecret } from '../../lib/ticket-secret.ts'

export type TicketKeys = {
  /** Calls `use` with the keys of a listener, and with those of each day after it. */
  follow(listener: string, use: (keys: Buffer) => void): void
  stop(): Promise<void>
}

const LOOK_EVERY_MS = MINUTE

export function followTicketKeys(
  first: TicketSecret,
  { clock, log }: { clock: Clock; log: Log },
): TicketKeys {
  const users = new Map<string, (keys: Buffer) => void>()
  let current = advanceTicketSecret(first, clock.now())
  const run = async () => {
    const { day } = current
    current = advanceTicketSecret(current, clock.now())
    if (current.day !== day) for (const [listener, use] of users) use(ticketKeysOf(current, listener))
  }
  const stopping = new AbortController()
  const loop = { name: 'keys of TLS tickets', everyMs: LOOK_EVERY_MS, timeoutMs: LOOK_EVERY_MS, run }
  const looking = runLoop(loop, { clock, log, signal: stopping.signal })
  return {
    follow(listener, use) {
      users.set(listener, use)
      use(ticketKeysOf(current, listener))
    },
    async stop() {
      stopping.abort()
      await looking
    },
  }
}
