// `npm run hosts -- join-token`: the door is open for one host while the operator waits, an hour at most, and signs once. So
// nothing about it is stored, and an installation that adds no host has no port for it.

import { randomBytes, timingSafeEqual } from 'node:crypto'
import { HOUR } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Address } from '../../lib/setting-values.ts'
import { type Admission, type NewMember, serveDoor } from './door.ts'
import { type JoinToken, Refusal } from './protocol.ts'

const OPEN_MS = HOUR
/** A secret of 32 bytes is not guessed, but a door at which this many try is not worth keeping. */
const MAX_WRONG = 20

export type Door = {
  token: JoinToken
  /** Resolves with the address of the host that has joined. Rejects with a sentence if none has. */
  joined: Promise<string>
  close(): void
}

type Opened = {
  dataDir: string
  name: string
  at: Address
  /** Where gateways of other machines reach the server. */
  link: Address | null
  /** Makes it a host of the service. Throws `Refusal` with a sentence if it cannot be one. */
  enter: (host: NewMember) => Promise<void>
  /** Called with each machine that was refused, and why. */
  refused?: (peer: string, why: string) => void
  log: Log
  openMs?: number
}

export async function openDoor(opened: Opened): Promise<Door> {
  const { dataDir, name, at, link, enter, refused, log, openMs = OPEN_MS } = opened
  const secret = randomBytes(32).toString('base64url')
  const outcome = Promise.withResolvers<string>()
  let isUsed = false
  let wrong = 0

  const admission: Admission = {
    identify: async (shown) => {
      if (isEqual(shown, secret)) return await Promise.resolve({ name, node: null })
      wrong += 1
      throw new Refusal('its token is not the one that this door was opened for; make another one')
    },
    use: () => {
      if (isUsed) throw new Refusal('its token is used already; make another one')
      isUsed = true
      return () => void (isUsed = false)
    },
    joined: outcome.resolve,
    refused: (peer, why) => {
      refused?.(peer, why)
      if (wrong >= MAX_WRONG)
        outcome.reject(
          new Error(`${MAX_WRONG} connections had a wrong token: let only ${name} reach this port.`),
        )
    },
  }
  const door = await serveDoor({ dataDir, at, link, admission, enter, log })
  const late = setTimeout(
    () => outcome.reject(new Error(`No host has joined as ${name} in time: make another token.`)),
    openMs,
  )
  const close = () => {
    clearTimeout(late)
    door.close()
  }
  outcome.promise.then(close, close)
  const token = { name, ...door.at, fingerprint: door.fingerprint, secret }
  return { token, joined: outcome.promise, close }
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
