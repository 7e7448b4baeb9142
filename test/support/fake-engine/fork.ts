// A fake machine as a copy of another one: what it has of its source, and what is its own.

import { startFingerprintOf } from '../../../src/engine/start-fingerprint.ts'
import type { Forked, ForkSpec } from '../../../src/engine/engine.ts'
import { type FakeMachine, FORK_GENERATION, newMachine } from './machine.ts'
import { diskOf, memoryOf } from './memory.ts'
import { lostIn } from './processes.ts'

export function copyMachine(
  source: FakeMachine,
  { id, networkGroup, run }: ForkSpec,
  address: string,
  canKeepMemory: boolean,
  now: Date,
): FakeMachine {
  const copy = newMachine({ ...source.spec, id, networkGroup }, source.image, address)
  copy.files = diskOf(source)
  copy.processes = lostIn(source, now)
  const forks = Number(source.files.get(FORK_GENERATION)?.toString()) + 1
  copy.files.set(FORK_GENERATION, Buffer.from(`${forks}\n`))
  const memory = canKeepMemory && run ? memoryOf(source, 0) : null
  if (memory && run && memory.beginning === startFingerprintOf(run)) copy.memory = memory
  return copy
}

export function forkedOf({ status, memory }: FakeMachine): Forked {
  return { status, copied: memory ? 'memory' : 'disk' }
}
