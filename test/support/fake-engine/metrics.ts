// What a fake machine uses: a twentieth of a processor while it is awake, and what a test writes into it.

import type { MachineMetrics } from '../../../src/engine/metrics.ts'
import type { Clock } from '../../../src/lib/clock.ts'
import type { FakeMachine } from './machine.ts'

const MB = 1024 ** 2
const GB = 1024 ** 3

export function metricsOf(machine: FakeMachine, clock: Clock): MachineMetrics {
  const { spec, run, status, files } = machine
  const written = [...files.values()].reduce((sum, { length }) => sum + length, 0)
  const limitBytes = spec.size.memoryMb * MB
  const awake = run ? awakeMs(run, clock) : 0
  return {
    at: clock.now(),
    run: run && {
      generation: status.generation,
      cpu: { usedMs: 10 + Math.floor(awake / 20), limitedMs: 0 },
      memory: { usedBytes: 24 * MB, cacheBytes: 8 * MB, peakBytes: 40 * MB, limitBytes },
      pids: { count: 3, limit: spec.size.pids },
      network: { receivedBytes: Math.floor(awake * 2), sentBytes: Math.floor(awake) },
      io: { readBytes: 4 * MB, writtenBytes: written },
    },
    disk: { usedBytes: MB + written, limitBytes: spec.size.diskGb * GB },
    volume: spec.volume && { usedBytes: MB, limitBytes: spec.volume.gb * GB },
  }
}

/** How long a run has not stood still. */
export type Awake = { ms: number; sinceMs: number | null }

export const awakeFrom = (clock: Clock): Awake => ({ ms: 0, sinceMs: clock.monotonicMs() })

export function standStill(run: { awake: Awake }, frozen: boolean, clock: Clock): void {
  run.awake = { ms: awakeMs(run, clock), sinceMs: frozen ? null : clock.monotonicMs() }
}

function awakeMs({ awake }: { awake: Awake }, clock: Clock): number {
  return awake.ms + (awake.sinceMs === null ? 0 : clock.monotonicMs() - awake.sinceMs)
}
