// Rotates the logs of running machines: the file that conmon writes is renamed, conmon opens a new one, and the oldest
// parts over the limit are deleted. From its first rotation on, what conmon costs is limited together with the team's
// other ones (team-groups.ts): a machine that prints as fast as it can waits for conmon then.
//
// Logs are rotated one after the other. A rename waits until conmon has finished a write, and conmon has little of the
// processor; a deletion waits for the disk to discard the blocks. Each occupies a thread of Node's pool meanwhile, and
// all file calls of the engine need those few threads.

import { statSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { limits } from '../../../contract/limits.ts'
import { createKeyedLock } from '../../../lib/concurrency/keyed-lock.ts'
import type { EngineContext } from '../machine/context.ts'
import { limitLogWriter } from '../kernel/team-groups.ts'
import { isMonitorAlive, type Monitor, reopenLog } from '../runtime/monitor.ts'
import { currentLogFile } from './logs.ts'
import { dropOldest, listParts } from './parts.ts'

export type LogRotation = {
  /** Called several times a second for every running machine. Returns null if there is nothing to do. */
  rotateIfLarge(id: string, generation: number): Promise<void> | null
}

const PART_BYTES = limits.logBytes / 4

export function createLogRotation(host: EngineContext): LogRotation {
  const oneAtATime = createKeyedLock()
  /** A machine waits at most once, however large its log has grown meanwhile: conmon itself bounds that. */
  const waiting = new Set<string>()
  const limited = new WeakSet<Monitor>()
  const limit = async (id: string) => {
    const { spec, monitor } = host.machines.get(id)?.record ?? {}
    if (!spec || !monitor || limited.has(monitor) || !isMonitorAlive(monitor)) return
    await limitLogWriter(host.cgroups, spec.networkGroup, monitor.pid)
    limited.add(monitor)
  }
  return {
    rotateIfLarge: (id, generation) => {
      if (waiting.has(id) || !isLarge(currentLogFile(host, id, generation))) return null
      waiting.add(id)
      const work = async () => {
        await limit(id)
        await rotate(host, id, generation)
      }
      return oneAtATime('rotation', work).finally(() => waiting.delete(id))
    },
  }
}

function isLarge(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false })
  return found !== undefined && found.size >= PART_BYTES
}

async function rotate(host: EngineContext, id: string, generation: number): Promise<void> {
  const { logs } = host.paths.machine(id)
  const current = currentLogFile(host, id, generation)
  const part = (await listParts(logs)).find((one) => one.path === current)
  if (!part) return
  await rename(current, join(logs, `${generation}.${part.part}.log`))
  await reopenLog(host.paths.run(id, generation)).catch((error: unknown) => {
    host.log.warn({ err: error, machine: id }, 'conmon did not reopen its log')
  })
  await dropOldest(await listParts(logs))
}
