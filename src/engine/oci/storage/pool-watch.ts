// Looks after the pool (decision 0070): that the space of its file is the pool's own, so that no other writer on the host
// can take what a unit has been told is on the disk; and that a pool the kernel has made read-only comes back.

import { stat, statfs } from 'node:fs/promises'
import { SECOND } from '../../../lib/clock.ts'
import { runOrThrow } from '../../../lib/process.ts'
import type { EngineContext } from '../context.ts'
import type { Paths } from '../paths.ts'
import { closePool, isWritable, openPool, poolDevice } from './pool.ts'
import { endRun } from '../lifecycle/stop.ts'

const LOOK_EVERY_MS = 5 * SECOND
const ALLOCATE_TIMEOUT_MS = 120_000
/** A little that was freed is not worth a call. */
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
        if (!(await isWritable(host.paths))) {
          if (!isTold) host.log.error({ alarm: 'pool' }, READ_ONLY)
          isTold = true
          isTold = !(await mendPool(host))
        }
      } catch (error) {
        host.log.error({ err: error, alarm: 'pool' }, 'the disk pool could not be mounted anew')
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
    host.log.warn({ err: error }, 'the space of the disk pool could not be taken beforehand')
  }
}

/**
 * Takes what the file does not have of the host yet, or has given back: units' blocks that are freed are, so that nothing
 * can be read from them. Not what the host needs itself: answers whether it is whole.
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
 * A pool whose file could not be written is read-only until it is mounted anew. Once the host has space again that is
 * done; what still runs on it can write nothing, and is ended first. Answers whether it was done.
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
  await closePool(host.paths)
  await openPool(host.paths, null)
  host.ioDevice = await poolDevice(host.paths)
  host.log.warn({ alarm: 'pool' }, 'the disk pool was mounted anew, and can be written')
  return true
}
