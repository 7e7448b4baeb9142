// A limit of failed attempts to authenticate for each peer address, so that guessing is slow and costs us little. Kept in
// the memory of each process: a statement for every guess would be what a guesser can make us do. The address is that of
// the connection, or what a trusted proxy says it is; other headers that name one are anybody's to write.

import { createHash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { type AppError, rateLimited } from '../../contract/errors.ts'
import { unmapped } from '../../lib/address-ranges.ts'
import { tellBoundMet } from '../../lib/bound-met.ts'
import { type Clock, MINUTE, SECOND } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { slidingWindow } from '../../lib/concurrency/sliding-window.ts'

export type FailedAttempts = {
  /**
   * Throws `rateLimited` for an address with too many failures. A credential that worked before passes
   * all the same: whoever guesses behind a shared address must not lock its honest users out.
   */
  check(address: string, presented: string): void
  /** What `check` throws; null: it does not. */
  refusalOf(address: string, presented: string): AppError | null
  failed(address: string): void
  succeeded(presented: string): void
}

export const FAILURES_PER_MINUTE = 120
const MAX_KNOWN = 10_000

export function createFailedAttempts({ clock, log }: { clock: Clock; log: Log }): FailedAttempts {
  const failures = slidingWindow(FAILURES_PER_MINUTE, MINUTE)
  const known = new Set<string>()
  const refusalOf = (address: string, presented: string): AppError | null => {
    const waitMs = failures.waitMs(peerKey(address), clock.monotonicMs())
    if (waitMs <= 0 || known.has(fingerprint(presented))) return null
    tellBoundMet({ clock, log }, { bound: 'failed credentials', by: peerKey(address) })
    const retryAfterS = Math.ceil(waitMs / SECOND)
    const limit = `${FAILURES_PER_MINUTE} failed attempts a minute from one address`
    return rateLimited(`The limit is ${limit}. Try again in ${retryAfterS} s.`, retryAfterS)
  }
  return {
    check: (address, presented) => {
      const refusal = refusalOf(address, presented)
      if (refusal) throw refusal
    },
    refusalOf,
    failed: (address) => failures.record(peerKey(address), clock.monotonicMs()),
    succeeded: (presented) => {
      known.add(fingerprint(presented))
      const [oldest] = known
      if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest)
    },
  }
}

/** A network of IPv6 (/64) is one peer: whoever has one address of it has all of them. */
export function peerKey(ofConnection: string): string {
  const address = unmapped(ofConnection)
  if (!isIPv6(address) || address.includes('.')) return address
  const [head = '', tail = ''] = address.split('::')
  const groups = head.split(':')
  const missing = 8 - groups.length - (tail === '' ? 0 : tail.split(':').length)
  return [...groups, ...Array<string>(Math.max(0, missing)).fill('0')].slice(0, 4).join(':')
}

function fingerprint(presented: string): string {
  return createHash('sha256').update(presented).digest('base64')
}
