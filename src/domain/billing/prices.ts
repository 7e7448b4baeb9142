// What running a unit costs (design 5, Pricing). Whole nano-cents an hour, so that no price is rounded.

import type { Size } from '../../contract/policy.ts'

const NANO = 1_000_000_000

export const priceNanoCentsPerHour = {
  nano: 250_000_000n,
  small: 500_000_000n,
  medium: 1_500_000_000n,
  large: 3_000_000_000n,
} as const satisfies Record<Size, bigint>

/** Euro cents, fractions included, as answers show money. */
export function toCents(nanoCents: bigint): number {
  return Number(nanoCents) / NANO
}
