// Watches the pool (decisions/disks-and-logs.md): its file keeps its space allocated, so that no other writer on the host
// can take space that a unit has been promised; and a pool that the kernel has made read-only is repaired.

import { stat, statfs } from 'node:fs/promises'
import { SECOND } from '../../../lib/clock.ts'
import { runOrThrow } from '../kernel/programs.ts'
import type { EngineContext } from '../machine/context.ts'
import type { Paths } from '../paths.ts'
import { closePool, isWritable, openPool, poolDevice } from '../storage/pool.ts'
import { endRun } from './stop.ts'

const LOOK_EVERY_MS = 5 * SECOND
const ALLOCATE_TIMEOUT_MS = 120_000
/** Less freed space than this is not worth a call. */
const LEAST_MISSING = 64 * 1024 ** 2
const BLOCK = 512
const GB = 1024 ** 3

const READ_ONLY = 'the disk pool is read-only: the disk of the host was full, or failed'

export type PoolUsage = 'allocated' | 'sparse'

export function watchPool(host: EngineContext, space: PoolUsage): { close(): Promise<void> } {
  const closed = new AbortController()
  let isTold = false
  const look = async () => {
    while (!closed.signal.aborted) {
      try {
        if (!isWritable(host.paths)) {
          if (!isTold) host.log.error({ alarm: 'pool' }, READ_ONLY)
          isTold = true
          isTold = !(await mendPool(host))
        }
      } catch (error) {
        host.log.error({ err: error, alarm: 'pool' }, 'disk pool could not be remounted')
      }
      if (space === 'allocated') await allocate(host)
      await host.clock.sleep(LOOK_EVERY_MS, closed.signal).catch(() => {})
    }
  }
  const looking = look()
  return {
    close: async () => {
      closed.abort()
      await looking
    },
  }
}

async function allocate(host: EngineContext): Promise<void> {
  try {
    await allocatePool(host.paths, host.reserveGb)
  } catch (error) {
    host.log.warn({ err: error }, 'space of the disk pool could not be allocated')
  }
}

/**
 * Allocates the space that the file does not have yet, or has given back: freed blocks of units are given back, so
 * that nothing can be read from them. Keeps the host's reserve free. Returns whether the file is fully allocated.
 */
export async function allocatePool(paths: Paths, reserveGb: number): Promise<boolean> {
  const [file, fileSystem] = await Promise.all([stat(paths.poolFile), statfs(paths.poolFile)])
  const missing = file.size - file.blocks * BLOCK
  if (missing < LEAST_MISSING) return true
  const free = fileSystem.bavail * fileSystem.bsize
  if (free - missing < reserveGb * GB) return false
  const args = ['--keep-size', '--length', `${file.size}`, paths.poolFile]
  await runOrThrow('fallocate', args, { timeoutMs: ALLOCATE_TIMEOUT_MS })
  return true
}

/**
 * A pool whose file could not be written is read-only until it is mounted again. That is done once the host has space
 * again; machines that still run on it cannot write, and are ended first. Returns whether it was done.
 */
async function mendPool(host: EngineContext): Promise<boolean> {
  const { bavail, bsize } = await statfs(host.paths.machines)
  if (bavail * bsize < host.reserveGb * GB) return false
  for (const machine of host.machines.values()) {
    await host.lock(machine.record.spec.id, async () => {
      await endRun(host, machine)
      await machine.cleanup
    })
  }
  await host.ready.clear()
  await closePool(host.paths)
  await openPool(host.paths, null)
  host.ioDevice = await poolDevice(host.paths)
  host.log.warn({ alarm: 'pool' }, 'disk pool remounted; it can be written again')
  return true
}
