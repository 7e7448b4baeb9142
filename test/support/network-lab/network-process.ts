// The network in a process of its own, inside a lab's namespace and killable: told what to do by messages.

import type { MachineEgress } from '../../../src/engine/egress.ts'
import { createLog } from '../../../src/lib/log.ts'
import type { EgressOptions } from '../../../src/engine/oci/network/restricting.ts'
import { openNetwork } from '../../../src/engine/oci/network/network.ts'
import type { NetworkOptions } from '../../../src/engine/oci/network/types.ts'
import type { Pair } from '../../../src/engine/oci/network/traffic.ts'
import type { MachineSeen } from '../../../src/lib/egress/seen.ts'

export type Call = {
  id: number
  method: 'recover' | 'attach' | 'detach' | 'release' | 'restrict' | 'watchTraffic' | 'watchSeen' | 'close'
  argument: unknown
}
export type Reply = { id: number; result?: unknown; error?: string }
/** Comes by itself, once `watchTraffic` or `watchSeen` has been called. */
export type Told = { id: null; pairs: Pair[]; seen: MachineSeen[] }

const { egress, ...options } = JSON.parse(process.argv[2] ?? '') as Omit<NetworkOptions, 'log' | 'egress'> & {
  egress: Omit<EgressOptions, 'onNeeded'>
}
const network = await openNetwork({
  ...options,
  egress: { ...egress, onNeeded: () => {} },
  log: createLog('network', 'error'),
})

const tell = (pairs: Pair[]) => void process.send?.({ id: null, pairs, seen: [] } satisfies Told)
const tellSeen = async (seen: MachineSeen[]) =>
  void process.send?.({ id: null, pairs: [], seen } satisfies Told)
const forGood = new AbortController().signal

process.on('message', ({ id, method, argument }: Call) => {
  if (method === 'watchTraffic') return void network.watchTraffic(tell, forGood)
  if (method === 'watchSeen') return void network.watchSeen(tellSeen, forGood)
  if (method === 'restrict') {
    const { machineId, egress: rules } = argument as { machineId: string; egress: MachineEgress | null }
    return settle(id, network.restrict(machineId, rules))
  }
  const act = network[method] as (argument: unknown) => Promise<unknown>
  settle(id, act(argument))
})

function settle(id: number, work: Promise<unknown>): void {
  work.then(
    (result) => process.send?.({ id, result } satisfies Reply),
    (error: unknown) => process.send?.({ id, error: String(error) } satisfies Reply),
  )
}

process.on('disconnect', () => process.exit(0))
process.send?.({ id: 0 } satisfies Reply)
