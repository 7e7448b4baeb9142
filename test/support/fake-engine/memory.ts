// What a fake machine has in memory, and how it outlives a run: everything below /dev/shm, as in a real one. It is
// gone with the run that had it, unless it was kept; what was kept is used once, by a run that begins alike.

import { startFingerprintOf } from '../../../src/engine/start-fingerprint.ts'
import type { RunSpec } from '../../../src/engine/engine.ts'
import type { FakeMachine } from './machine.ts'

export type FakeMemory = {
  /** The run it is of; 0 for what a copy has of its source. */
  generation: number
  beginning: string
  files: Map<string, Buffer>
}

const isMemory = (path: string): boolean => path.startsWith('/dev/shm/')

/** What the run has in memory just now. Null where nothing runs. */
export function memoryOf(machine: FakeMachine, generation: number): FakeMemory | null {
  if (!machine.run) return null
  const files = [...machine.files].filter(([path]) => isMemory(path))
  return { generation, beginning: startFingerprintOf(machine.run.spec), files: new Map(files) }
}

/** What is on its disk and volume. */
export function diskOf(machine: FakeMachine): Map<string, Buffer> {
  return new Map([...machine.files].filter(([path]) => !isMemory(path)))
}

/** Puts what was kept in place for a run that begins; says whether there was anything for it. */
export function useMemory(machine: FakeMachine, run: RunSpec): boolean {
  const kept = machine.memory
  machine.memory = null
  machine.files = diskOf(machine)
  if (kept?.beginning !== startFingerprintOf(run)) return false
  for (const [path, content] of kept.files) machine.files.set(path, content)
  return true
}
