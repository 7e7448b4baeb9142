// A machine that runs, for tests of what lies between an engine and its callers.

import type { Engine, MachineRef, RunSpec } from '../../../src/engine/engine.ts'

export const ref: MachineRef = { id: 'unit_1', generation: 1 }

export const run: RunSpec = {
  hostname: 'a',
  entrypoint: null,
  cmd: null,
  env: {},
  files: [],
  searchDomain: 'b.internal',
  egress: null,
}

/** Makes the machine and starts its first run. */
export async function startMachine(engine: Engine): Promise<void> {
  const { digest } = await engine.pull('docker.io/library/debian:12')
  await engine.create({
    id: ref.id,
    imageDigest: digest,
    isolation: 'runc',
    size: { cpus: 0.25, memoryMb: 64, pids: 8, diskGb: 1 },
    volume: null,
    networkGroup: 1,
  })
  await engine.start(ref, run)
}
