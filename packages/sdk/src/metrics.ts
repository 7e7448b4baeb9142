// The resource usage of a unit, as the host counts it. Reading it wakes nothing.

import type { UnitMetrics } from './contract.ts'
import type { CallOptions, Transport } from './transport.ts'

/** A sample every two seconds, until the unit is destroyed. */
export async function* followMetrics(
  transport: Transport,
  path: string,
  options: CallOptions,
): AsyncGenerator<UnitMetrics> {
  const call = { method: 'GET' as const, path, query: { follow: true }, ...options }
  for await (const { event, data } of transport.events(call)) {
    if (event === 'end') return
    yield data as UnitMetrics
  }
}
