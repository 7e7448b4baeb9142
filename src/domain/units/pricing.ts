// GET /v1/pricing: the resources and the price of each size.

import type { Config } from '../../config.ts'
import { sizes } from '../../contract/policy.ts'
import type { Pricing } from '../../contract/pricing.ts'
import { toCents } from '../../lib/money.ts'
import { HOURS_OF_A_MONTH, sizeNanoCentsPerHour, volumeNanoCentsPerGbHour } from '../billing/prices.ts'
import { diskGbOf } from '../teams/plan-limits.ts'
import { machineSizes } from './model/machine.ts'

export function getPricing({ freeCreditsCents }: Pick<Config, 'freeCreditsCents'>): Pricing {
  return {
    currency: 'eur',
    sizes: sizes.map((size) => ({
      size,
      vcpu: machineSizes[size].cpus,
      memoryMb: machineSizes[size].memoryMb,
      diskGb: machineSizes[size].diskGb,
      centsPerHour: toCents(sizeNanoCentsPerHour[size]),
    })),
    volumeCentsPerGbMonth: toCents(volumeNanoCentsPerGbHour * BigInt(HOURS_OF_A_MONTH)),
    planDiskGb: { ...diskGbOf },
    freeCreditsOnVerifyCents: freeCreditsCents,
  }
}
