// Rate limits (spec 8): per credential for what is asked, and per peer address for failed attempts to
// authenticate, so that guessing is slow and costs us little. Kept in the memory of this process.

import { createHash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import type { App } from '../../app.ts'
import { rateLimited } from '../../contract/errors.ts'
import { type Clock, MINUTE, SECOND } from '../../lib/clock.ts'
import { slidingWindow, type SlidingWindow } from '../../lib/sliding-window.ts'

/** What a call counts as. Every call also counts as a request. */
export type RateClass = 'requests' | 'creations' | 'execs'

export type RateLimits = {
  /** Counts a call, or throws `rateLimited`; a refused call counts for nothing. */
  spend(credentialId: string, rateClass: RateClass): void
  /**
   * Throws `rateLimited` for an address with too many failures. A credential that worked before passes
   * all the same: whoever guesses behind a shared address must not lock its honest users out.
   */
  checkPeer(address: string, presented: string): void
  peerFailed(address: string): void
  peerSucceeded(presented: string): void
}

type Windows = Record<RateClass, SlidingWindow>
/** Of this process, by what limits them. */
const counted = new WeakMap<Record<RateClass, number>, Windows>()

/** What is left of each rate, and from when on it is whole again. */
export async function readRates(
  { clock, config }: Pick<App, 'clock' | 'config'>,
  credentialId: string,
): Promise<{ name: RateClass; limit: number; remaining: number; resetsAt: string }[]> {
  const nowMs = clock.monotonicMs()
  return (['requests', 'creations', 'execs'] as const).map((name) => {
    const limit = config.rates[name]
    const { times, untilMs } = counted.get(config.rates)?.[name].spent(credentialId, nowMs) ?? {
      times: 0,
      untilMs: 0,
    }
    const resetsAt = new Date(clock.now().getTime() + Math.max(0, untilMs - nowMs)).toISOString()
    return { name, limit, remaining: Math.max(0, limit - times), resetsAt }
  })
}

export const FAILURES_PER_MINUTE = 120
const MAX_KNOWN = 10_000

export function createRateLimits(rates: Record<RateClass, number>, clock: Clock): RateLimits {
  const windows = {
    requests: slidingWindow(rates.requests, MINUTE),
    creations: slidingWindow(rates.creations, MINUTE),
    execs: slidingWindow(rates.execs, MINUTE),
  } satisfies Record<RateClass, SlidingWindow>
  counted.set(rates, windows)
  const failures = slidingWindow(FAILURES_PER_MINUTE, MINUTE)
  const known = new Set<string>()

  return {
    spend: (credentialId, rateClass) => {
      const now = clock.monotonicMs()
      const counted = new Set<RateClass>(['requests', rateClass])
      for (const name of counted) {
        refuseWhile(windows[name].waitMs(credentialId, now), `${rates[name]} ${name} a minute`)
      }
      for (const name of counted) windows[name].record(credentialId, now)
    },
    checkPeer: (address, presented) => {
      const waitMs = failures.waitMs(peerKey(address), clock.monotonicMs())
      if (waitMs > 0 && !known.has(fingerprint(presented))) {
        refuseWhile(waitMs, `${FAILURES_PER_MINUTE} failed attempts a minute from one address`)
      }
    },
    peerFailed: (address) => failures.record(peerKey(address), clock.monotonicMs()),
    peerSucceeded: (presented) => {
      known.add(fingerprint(presented))
      const [oldest] = known
      if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest)
    },
  }
}

function refuseWhile(waitMs: number, limit: string): void {
  if (waitMs <= 0) return
  const retryAfterS = Math.ceil(waitMs / SECOND)
  throw rateLimited(`The limit is ${limit}. Try again in ${retryAfterS} s.`, retryAfterS)
}

/** A network of IPv6 (/64) is one peer: whoever has one address of it has all of them. */
export function peerKey(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address
  const [head = '', tail = ''] = address.split('::')
  const groups = head.split(':')
  const missing = 8 - groups.length - (tail === '' ? 0 : tail.split(':').length)
  return [...groups, ...Array<string>(Math.max(0, missing)).fill('0')].slice(0, 4).join(':')
}

function fingerprint(presented: string): string {
  return createHash('sha256').update(presented).digest('base64')
}
