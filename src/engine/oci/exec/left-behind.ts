// What a command leaves behind in its machine keeps its output open: `server & echo started` ends at once, and the server
// prints for hours. If nobody read that, the server would end at its first line. So the pipes go to a process of the
// host that reads them to their ends and keeps nothing (relay.c). It outlives the engine, needs none, and ends by itself
// when the last process that could write has ended, at the latest with the machine.
//
// Its processor time is bounded with that of the team's log writers: nothing of other teams pays for it.

import { join } from 'node:path'
import type { EngineContext, Machine } from '../machine/context.ts'
import { waitForChild } from '../kernel/children.ts'
import { allPids, commandOf, isOfHost } from '../kernel/host-processes.ts'
import { spawnProgram } from '../kernel/spawning.ts'
import { limitLogWriter } from '../kernel/team-groups.ts'
import { RELAY } from '../machine-programs/relay.ts'

/** Of one machine. Beyond that, what a command leaves behind finds its pipes broken. */
const MAX_DRAINS = 256

const USE = 'drain'

/** Has pipes read to their ends from now on. The caller may close its own descriptors of them. */
export function leaveBehind(host: EngineContext, machine: Machine, fds: number[]): void {
  const { spec, state } = machine.record
  const [first, second = null] = fds
  if (first === undefined || state !== 'running' || machine.ending || !hasRoom(host, machine)) return
  const program = programOn(host)
  try {
    const pid = spawnProgram(program, [USE, spec.id], { env: {}, cwd: '/', stdio: [first, second, null] })
    machine.drains.add(pid)
    void waitForChild(pid)
    limitLogWriter(host.cgroups, spec.networkGroup, pid).catch((error: unknown) =>
      host.log.debug({ err: error, machine: spec.id }, 'a process that reads output ended at once'),
    )
  } catch (error) {
    host.log.warn({ err: error, machine: spec.id }, 'output of what a command left behind is not read')
  }
}

/** Those that an earlier engine started count too. */
export function adoptDrains(host: EngineContext): void {
  for (const pid of allPids()) {
    const [program, use, id = ''] = commandOf(pid)
    if (program === programOn(host) && use === USE && isOfHost(pid)) host.machines.get(id)?.drains.add(pid)
  }
}

function hasRoom(host: EngineContext, { drains, record }: Machine): boolean {
  if (drains.size < MAX_DRAINS) return true
  for (const pid of drains) {
    const [program, use, id] = commandOf(pid)
    if (program !== programOn(host) || use !== USE || id !== record.spec.id) drains.delete(pid)
  }
  return drains.size < MAX_DRAINS
}

function programOn(host: EngineContext): string {
  return join(host.paths.helper, RELAY)
}
