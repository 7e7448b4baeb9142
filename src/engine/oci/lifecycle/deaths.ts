// Who ended a run. conmon writes down 137 for a process that was killed and for one that ended with that number, as a
// shell does whose child was killed. The kernel tells them apart to whoever held a descriptor of the process meanwhile.
//
// In either class a SIGKILL that ends what conmon watches comes from the host: the first process of a container of runc
// is spared those of its own namespace, and runsc ends with a number when a machine's first process is killed inside.

import { constants } from 'node:os'
import { countOomKills, hasMetMemoryLimit } from '../kernel/cgroups.ts'
import type { EngineContext, Machine } from '../context.ts'
import { childrenOf } from '../runtime/monitor.ts'
import { closeFd, endingSignal, openProcess } from '../kernel/syscalls.ts'

const { SIGKILL } = constants.signals
const SIGKILL_CODE = 128 + SIGKILL

/** From when its runtime has made it: of what dies before nobody learns how. */
export function holdParts(machine: Machine): void {
  letGoOfParts(machine)
  const { monitor } = machine.record
  if (!monitor) return
  for (const pid of childrenOf(monitor)) {
    const part = openProcess(pid)
    if (part === null) continue
    // Otherwise the id may have been given to another process since.
    if (childrenOf(monitor).includes(pid)) machine.parts.push(part)
    else closeFd(part)
  }
}

export function letGoOfParts(machine: Machine): void {
  for (const part of machine.parts.splice(0)) closeFd(part)
}

/**
 * `oomKilled`: over its own memory. `byHost`: killed by the host, for want of the host's memory say, as far as the kernel
 * tells. Neither where the end was asked for. Call it before the run's group is removed.
 */
export function judgeDeath(
  host: EngineContext,
  machine: Machine,
  code: number,
): { oomKilled: boolean; byHost: boolean } {
  if (machine.ending) return { oomKilled: false, byHost: false }
  const { record, parts } = machine
  const { container } = host.paths.run(record.spec.id, record.generation)
  // Counts what the kernel kills for the host's memory, too.
  const isOom = code === SIGKILL_CODE && countOomKills(host.cgroups, container) > 0
  const oomKilled = isOom && hasMetMemoryLimit(host.cgroups, container)
  const killed = parts.some((part) => endingSignal(part) === SIGKILL)
  return { oomKilled, byHost: !oomKilled && (isOom || killed) }
}
