// Prices of units (design 5, Pricing), in whole nano-cents per hour, so that no price is rounded.

import type { Size } from '../../contract/policy.ts'

export const HOURS_OF_A_MONTH = 24 * 30

export const sizeNanoCentsPerHour = {
  nano: 250_000_000n,
  small: 500_000_000n,
  medium: 1_500_000_000n,
  large: 3_000_000_000n,
} as const satisfies Record<Size, bigint>

/** 7.2 cents for 30 days. */
export const volumeNanoCentsPerGbHour = 10_000_000n
