// Copies the memory of a fork's sources: chooses whose, and has each dumped (checkpoint/checkpoints.ts). They stand while
// it is dumped: a source with too much memory for a short stand is copied without.

import { availableParallelism } from 'node:os'
import { startFingerprintOf } from '../../start-fingerprint.ts'
import type { ForkSpec } from '../../engine.ts'
import { memoryInUse } from '../kernel/cgroup-memory.ts'
import { driverOf, getDriver, type EngineContext, type Machine } from '../machine/context.ts'
import type { Memory } from '../runtime/driver.ts'
import { dumpCheckpoint, commitCheckpoint } from '../checkpoint/checkpoints.ts'

type Sources = Map<string, Machine>

const GB = 1024 ** 3

/** Which copies each source is to be dumped for, one after the other: those that it need not stand long for. */
export type Dumps = Map<Machine, ForkSpec[]>

export function chooseDumps(host: EngineContext, forks: ForkSpec[], sources: Sources): Dumps {
  let left = availableParallelism()
  const chosen: Dumps = new Map()
  for (const fork of forks) {
    const source = sources.get(fork.source.id)
    const memory = source && driverOf(host, source).memory
    if (!source || !memory || !wouldResume(fork, source)) continue
    // A copy is restored with the program of new runs.
    if (getDriver(host, source.record.spec).memory?.madeWith !== memory.madeWith) continue
    const share = standsMs(host, source, memory) / memory.saving.mostMs
    const copies = chosen.get(source) ?? []
    // One after the other if one machine is copied twice.
    if (share * (copies.length + 1) > 1 || share > left) continue
    left -= share
    chosen.set(source, [...copies, fork])
  }
  return chosen
}

/** Call it while the sources stand. Returns the copies with a dump to keep. */
export async function dumpForFork(host: EngineContext, chosen: Dumps): Promise<ForkSpec[]> {
  const dumps = [...chosen].map(async ([source, copies]) => {
    const giveUpMs = driverOf(host, source).memory?.saving.giveUpMs ?? 0
    const dumped: ForkSpec[] = []
    for (const fork of copies) if (await dumpCheckpoint(host, source, fork.id, giveUpMs)) dumped.push(fork)
    return dumped
  })
  return (await Promise.all(dumps)).flat()
}

/** Call it once the sources have resumed. */
export async function commitForFork(
  host: EngineContext,
  dumped: ForkSpec[],
  sources: Sources,
): Promise<void> {
  await Promise.all(
    dumped.map(async ({ id, source }) => {
      const machine = sources.get(source.id)
      if (machine) await commitCheckpoint(host, machine.record, { id, generation: 0 })
    }),
  )
}

function wouldResume({ run }: ForkSpec, { record }: Machine): boolean {
  return run !== null && record.state === 'running' && record.beginning === startFingerprintOf(run)
}

function standsMs(host: EngineContext, { record }: Machine, { saving }: Memory): number {
  const { container } = host.paths.run(record.spec.id, record.generation)
  return saving.ms + (memoryInUse(host.cgroups, container) / GB) * saving.msPerGb
}
