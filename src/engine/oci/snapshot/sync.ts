// Syncs dirty pages before pausing machines for a snapshot, so the pause stays short. The machines keep running; what
// they write faster than the pool accepts is written during the pause.

import type { ForkSpec } from '../../engine.ts'
import { HELPER } from '../runtime/bundle.ts'
import { traitsOf } from '../traits.ts'
import { dirtyBytes } from '../kernel/cgroup-memory.ts'
import { destroyDisk, snapshotDisk } from '../storage/disks.ts'
import { execInMachine } from '../exec/exec.ts'
import type { EngineContext, Machine } from '../machine/context.ts'

const INSIDE_TIMEOUT_MS = 3000
/** Written out within some milliseconds. */
const LITTLE_BYTES = 8 * 1024 * 1024
const ROUNDS = 3

export async function syncDisks(
  host: EngineContext,
  forks: ForkSpec[],
  sources: Map<string, Machine>,
): Promise<void> {
  const flushed = [...sources].map(async ([id, machine]) => {
    if (machine.record.state !== 'running') return
    if (!traitsOf(machine.record.spec).sharesKernel && !machine.frozen) await flushInside(host, machine)
    const copy = forks.find(({ source }) => source.id === id)
    if (copy) await flushOutside(host, machine, copy.id)
  })
  await Promise.all(flushed)
}

/** A kernel of its own caches times and mapped pages. A machine that does not answer in time is copied as it is. */
async function flushInside(host: EngineContext, { record }: Machine): Promise<void> {
  const { spec, generation } = record
  const request = { argv: [HELPER, 'sync'], stdin: null, timeoutMs: INSIDE_TIMEOUT_MS }
  const asRoot = { asRoot: true }
  await execInMachine(host, { id: spec.id, generation }, request, () => {}, undefined, asRoot).catch(
    (error: unknown) => host.log.warn({ err: error, machine: spec.id }, 'machine is copied without a sync'),
  )
}

/** With a snapshot that is discarded: no other call writes out only one machine's data. */
async function flushOutside(host: EngineContext, { record }: Machine, copy: string): Promise<void> {
  const { container } = host.paths.run(record.spec.id, record.generation)
  for (let round = 0; round < ROUNDS && dirtyBytes(host.cgroups, container) > LITTLE_BYTES; round += 1) {
    await host.effect('engine.fork.flush', async () => {
      await snapshotDisk(host.paths, record.spec, copy)
      await destroyDisk(host.paths, copy)
    })
  }
}
