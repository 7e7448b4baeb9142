// Limits failed authentication attempts per peer address, so that guessing is slow and cheap to refuse. The counts
// are in the memory of each process, because a statement per guess would let an attacker load the database. The
// address is that of the connection, or the one that a trusted proxy forwards; anyone can forge other headers.

import { hash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { type AppError, limitReached } from '../../contract/errors.ts'
import { unmapped } from '../../lib/address-ranges.ts'
import { logLimitReached } from '../../lib/limit-reached.ts'
import { type Clock, MINUTE, SECOND } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { slidingWindow } from '../../lib/concurrency/sliding-window.ts'

export type FailedAttempts = {
  /**
   * Throws `rateLimited` for an address with too many failures. A credential that worked before still passes, so that
   * an attacker behind a shared address cannot lock out its honest users.
   */
  check(address: string, presented: string): void
  /** Returns the error that `check` would throw, or null. */
  refusalOf(address: string, presented: string): AppError | null
  failed(address: string): void
  succeeded(presented: string, credentialId?: string): void
  /** Returns the credential as which this was accepted before; null if it was not, or long ago. */
  acceptedAs(presented: string): string | null
}

export const FAILURES_PER_MINUTE = 120
const MAX_KNOWN = 10_000

export function createFailedAttempts({ clock, log }: { clock: Clock; log: Log }): FailedAttempts {
  const failures = slidingWindow(FAILURES_PER_MINUTE, MINUTE)
  /** Credentials by the fingerprint of what was shown. */
  const known = new Map<string, string | null>()
  const refusalOf = (address: string, presented: string): AppError | null => {
    const waitMs = failures.waitMs(peerKey(address), clock.monotonicMs())
    if (waitMs <= 0 || known.has(fingerprint(presented))) return null
    logLimitReached({ clock, log }, { bound: 'failed credentials', by: peerKey(address) })
    const retryAfterS = Math.ceil(waitMs / SECOND)
    const limit = `${FAILURES_PER_MINUTE} failed attempts a minute from one address`
    return limitReached(limit, retryAfterS)
  }
  return {
    check: (address, presented) => {
      const refusal = refusalOf(address, presented)
      if (refusal) throw refusal
    },
    refusalOf,
    failed: (address) => failures.record(peerKey(address), clock.monotonicMs()),
    acceptedAs: (presented) => known.get(fingerprint(presented)) ?? null,
    succeeded: (presented, credentialId) => {
      known.set(fingerprint(presented), credentialId ?? null)
      const [oldest] = known.keys()
      if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest)
    },
  }
}

/** All addresses of an IPv6 /64 count as one peer, because an attacker who has one of them has all. */
export function peerKey(ofConnection: string): string {
  const address = unmapped(ofConnection)
  if (!isIPv6(address) || address.includes('.')) return address
  const [head = '', tail = ''] = address.split('::')
  const groups = head.split(':')
  const missing = 8 - groups.length - (tail === '' ? 0 : tail.split(':').length)
  return [...groups, ...Array<string>(Math.max(0, missing)).fill('0')].slice(0, 4).join(':')
}

function fingerprint(presented: string): string {
  return hash('sha256', presented, 'base64')
}
