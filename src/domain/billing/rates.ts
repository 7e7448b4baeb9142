// What costs at a given time (spec 1, decisions/money.md): a machine while its unit is `running`, and a volume from the
// end of the unit's creation until its destruction. A unit in any other state pays for no machine.

import type { MeterKind } from '../../store/meters.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { sizeNanoCentsPerHour, volumeNanoCentsPerGbHour } from './prices.ts'

export type Rate = { kind: MeterKind; nanoCentsPerHour: bigint }

const withoutVolume: UnitRecord['state'][] = ['creating', 'error', 'destroying', 'destroyed']

export function ratesOf({ state, size, spec }: Pick<UnitRecord, 'state' | 'size' | 'spec'>): Rate[] {
  const rates: Rate[] = []
  if (state === 'running') rates.push({ kind: 'compute', nanoCentsPerHour: sizeNanoCentsPerHour[size] })
  if (spec.volume && !withoutVolume.includes(state)) {
    rates.push({ kind: 'volume', nanoCentsPerHour: BigInt(spec.volume.gb) * volumeNanoCentsPerGbHour })
  }
  return rates
}
