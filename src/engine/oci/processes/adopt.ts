// Background processes of an earlier engine: reading continues if their keepers exist; others have ended unobserved.
// Forks get records of what their sources had running.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { EngineContext, Machine } from '../machine/context.ts'
import { killExec } from '../exec/kill-command.ts'
import { closeReaders, endAs, follow, newHeld, openReaders } from './held.ts'
import type { Held } from './held-process.ts'
import { endKeeper, findKeepers, type Keeper, openKept, readNow } from './keeper.ts'
import { loadProcessRecords, type ProcessRecord, saveProcess } from './record.ts'

/** For all machines, at the engine's start. */
export async function adoptProcesses(host: EngineContext): Promise<void> {
  const keepers = new Map(findKeepers(host.paths.runs).map((keeper) => [keyOf(keeper), keeper]))
  for (const machine of host.machines.values()) await loadProcesses(host, machine, keepers)
  for (const keeper of keepers.values()) endKeeper(keeper)
}

/** Removes the keepers that it needs from the list. */
export async function loadProcesses(
  host: EngineContext,
  machine: Machine,
  keepers = new Map<string, Keeper>(),
): Promise<void> {
  const { id } = machine.record.spec
  for (const record of await loadProcessRecords(host.paths, id)) {
    const held = newHeld(host, id, record)
    machine.processes.set(record.id, held)
    if (record.state !== 'running') continue
    // If the host lost the run, its last output is all there is.
    machine.losesProcesses = machine.record.state !== 'running'
    const take = (holds: Keeper['holds']) => {
      const key = keyOf({ holds, process: record.id })
      const keeper = keepers.get(key) ?? null
      keepers.delete(key)
      return keeper
    }
    held.keeper = take('outputs')
    held.input = take('input')
    record.takesInput &&= held.input !== null
    const { execs } = host.paths.run(id, record.generation)
    for (const kind of ['json', 'pid']) await rm(join(execs, `${record.id}.${kind}`), { force: true })
    if (!readOn(host, machine, held)) await lose(host, machine, held)
  }
}

function keyOf({ holds, process }: Pick<Keeper, 'holds' | 'process'>): string {
  return `${holds} ${process}`
}

/** Returns false if the keeper of its output is gone. */
function readOn(host: EngineContext, machine: Machine, held: Held): boolean {
  if (held.keeper === null) return false
  try {
    const pipes = openKept(held.keeper)
    const said = readNow(pipes.report)
    const readers = openReaders(pipes, said?.toString('latin1') ?? '')
    held.record.pid ??= readers.said().pid
    held.unheard = said === null
    follow(host, machine, held, readers)
    return true
  } catch (error) {
    host.log.warn({ err: error, process: held.record.id }, 'output of a process can no longer be read')
    return false
  }
}

async function lose(host: EngineContext, machine: Machine, held: Held): Promise<void> {
  const { record } = machine
  // Without its keeper it may still run, but its output is lost.
  if (record.state === 'running' && held.record.generation === record.generation) {
    const paths = host.paths.run(record.spec.id, record.generation)
    await killExec(host, machine, paths, held.record.id).catch((error: unknown) =>
      host.log.warn({ err: error }, 'an abandoned process was not killed'),
    )
  }
  await endAs(host, machine, held, null)
}

/** At the engine's end: they go on, and the next engine continues reading. */
export function leaveProcesses(host: EngineContext): void {
  for (const machine of host.machines.values())
    for (const held of machine.processes.values()) {
      closeReaders(held)
      held.ring.close()
    }
}

/** A process of a source does not run in its copy: it is lost there, and its output stays with the source. */
export async function tellOfProcesses(
  host: EngineContext,
  source: Machine | undefined,
  copy: Machine,
): Promise<void> {
  const running = [...(source?.processes.values() ?? [])].filter(({ record }) => record.state === 'running')
  for (const { record } of running) {
    const told: ProcessRecord = {
      ...record,
      generation: 0,
      state: 'lost',
      takesInput: false,
      endedAt: host.clock.now(),
    }
    await saveProcess(host.paths, copy.record.spec.id, told)
    copy.processes.set(record.id, newHeld(host, copy.record.spec.id, told))
  }
}
