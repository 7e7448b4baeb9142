// Finds out what ended a run. conmon records 137 both for a killed process and for one that exited with that code, as
// a shell does whose child was killed. The kernel distinguishes them for a holder of the process's descriptor.
//
// In either class, a SIGKILL that ends the processes which conmon watches comes from the host: in runc, the first
// process of a container cannot be killed from its own namespace, and runsc exits with a code if a machine's first
// process is killed inside.

import { constants } from 'node:os'
import { countOomKills, hasMetMemoryLimit } from '../kernel/cgroup-memory.ts'
import type { EngineContext, Machine } from '../machine/context.ts'
import { childrenOf } from '../runtime/monitor.ts'
import { closeFd, endingSignal, openProcess } from '../kernel/syscalls.ts'

const { SIGKILL } = constants.signals
const SIGKILL_CODE = 128 + SIGKILL

/** Call it once the runtime has made the processes: how an earlier one died is unknown. */
export function holdParts(machine: Machine): void {
  letGoOfParts(machine)
  const { monitor } = machine.record
  if (!monitor) return
  for (const pid of childrenOf(monitor)) {
    const part = openProcess(pid)
    if (part === null) continue
    // Otherwise the id may belong to another process by now.
    if (childrenOf(monitor).includes(pid)) machine.parts.push(part)
    else closeFd(part)
  }
}

export function letGoOfParts(machine: Machine): void {
  for (const part of machine.parts.splice(0)) closeFd(part)
}

/**
 * `oomKilled`: it exceeded its own memory limit. `byHost`: the host killed it, for example for lack of the host's memory,
 * as far as the kernel tells. Both are false if the end was requested. Call it before the run's group is removed.
 */
export function judgeDeath(
  host: EngineContext,
  machine: Machine,
  code: number,
): { oomKilled: boolean; byHost: boolean } {
  if (machine.ending) return { oomKilled: false, byHost: false }
  const { record, parts } = machine
  const { container } = host.paths.run(record.spec.id, record.generation)
  // Also counts kills for the host's memory.
  const isOom = code === SIGKILL_CODE && countOomKills(host.cgroups, container) > 0
  const oomKilled = isOom && hasMetMemoryLimit(host.cgroups, container)
  const killed = parts.some((part) => endingSignal(part) === SIGKILL)
  return { oomKilled, byHost: !oomKilled && (isOom || killed) }
}
