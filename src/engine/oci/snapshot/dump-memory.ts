// Copies the memory of a fork's sources: chooses whose, and has each dumped (checkpoint/checkpoints.ts). They are
// paused while it is dumped, for at most half a second: a source with too much memory for that is copied without.

import { availableParallelism } from 'node:os'
import { startFingerprintOf } from '../../start-fingerprint.ts'
import type { ForkSpec } from '../../engine.ts'
import { memoryInUse } from '../kernel/cgroups.ts'
import type { EngineContext, Machine } from '../context.ts'
import { dumpCheckpoint, commitCheckpoint } from '../checkpoint/checkpoints.ts'

type Sources = Map<string, Machine>

/** Measured: 0.1 s and 0.4 s per GB. The rest of the half second is for a busy host. */
const DUMP_MS = 100
const DUMP_MS_PER_GB = 500
const MAX_MS = 250
/** The timeout of a dump that hangs: its source must go on. */
const DUMP_TIMEOUT_MS = 2000
const GB = 1024 ** 3

/** Call it while the sources are paused. Returns the copies with a dump to keep. */
export async function dumpForFork(
  host: EngineContext,
  forks: ForkSpec[],
  sources: Sources,
): Promise<ForkSpec[]> {
  let leftMs = MAX_MS * availableParallelism()
  const chosen = new Map<Machine, ForkSpec[]>()
  for (const fork of forks) {
    const source = sources.get(fork.source.id)
    if (!source || !wouldResume(fork, source)) continue
    const ms = dumpMs(host, source)
    const copies = chosen.get(source) ?? []
    // One after the other if one machine is copied twice.
    if (ms * (copies.length + 1) > MAX_MS || ms > leftMs) continue
    leftMs -= ms
    chosen.set(source, [...copies, fork])
  }
  const dumps = [...chosen].map(async ([source, copies]) => {
    const dumped: ForkSpec[] = []
    for (const fork of copies)
      if (await dumpCheckpoint(host, source, fork.id, DUMP_TIMEOUT_MS)) dumped.push(fork)
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
      if (machine) await commitCheckpoint(host, machine.record, { id, generation: 0 }, 'times')
    }),
  )
}

function wouldResume({ run }: ForkSpec, { record }: Machine): boolean {
  return run !== null && record.state === 'running' && record.beginning === startFingerprintOf(run)
}

function dumpMs(host: EngineContext, { record }: Machine): number {
  const { container } = host.paths.run(record.spec.id, record.generation)
  return DUMP_MS + (memoryInUse(host.cgroups, container) / GB) * DUMP_MS_PER_GB
}
