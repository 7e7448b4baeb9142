// Starts a background process: its record, its pipes and their keeper, the runtime's exec. Each step can be undone,
// and a crash in between leaves a process that is `lost`, which the next engine ends.

import { writeSync } from 'node:fs'
import { limits } from '../../../contract/limits.ts'
import type { MachineRef } from '../../engine.ts'
import type { MachineProcess, ProcessRequest as AskedProcess } from '../../process.ts'
import { EngineError } from '../../errors.ts'
import { removeChild } from '../kernel/cgroup-children.ts'
import { reapOrphans } from '../kernel/children.ts'
import { closeFd, createPipe } from '../kernel/syscalls.ts'
import { limitLogWriter } from '../kernel/team-groups.ts'
import { getRunning, type EngineContext, type Machine } from '../machine/context.ts'
import { asUser } from '../exec/as-user.ts'
import { whenNotHeld } from '../exec/exec.ts'
import { killExec } from '../exec/kill-command.ts'
import type { Account } from '../runtime/bundle.ts'
import { retry } from '../machine/clean-up-run.ts'
import {
  closeReaders,
  destroyReaders,
  endKeepers,
  follow,
  newHeld,
  openReaders,
  statusOfProcess,
} from './held.ts'
import type { Held } from './held-process.ts'
import { type Pipes, startInputKeeper, startKeeper } from './keeper.ts'
import { launch } from './launch.ts'
import { type ProcessRecord, removeProcess, saveProcess } from './record.ts'

type ProcessRequest = AskedProcess & { account: Account | null }

export async function startProcess(
  host: EngineContext,
  ref: MachineRef,
  asked: AskedProcess,
): Promise<MachineProcess> {
  const request = await asUser(host, ref, asked)
  return await whenNotHeld(host, ref, async () => {
    const machine = getRunning(host, ref)
    const held = machine.processes.get(request.id) ?? beginNew(host, machine, request)
    await held.begun
    return statusOfProcess(held)
  })
}

function beginNew(host: EngineContext, machine: Machine, request: ProcessRequest): Held {
  const { spec, generation } = machine.record
  const { id, shown, cwd, keepsAwake, tag } = request
  const forgotten = makeRoom(host, machine)
  const record: ProcessRecord = {
    id,
    generation,
    shown,
    cwd,
    keepsAwake,
    tag: tag ?? null,
    takesInput: request.takesInput ?? false,
    awakeUntil: null,
    state: 'running',
    exitCode: null,
    pid: null,
    startedAt: host.clock.now(),
    endedAt: null,
  }
  const held = newHeld(host, spec.id, record)
  // Set before the first await, so that a second call with the same id waits for this one.
  machine.processes.set(id, held)
  held.begun = begin(host, machine, held, request, forgotten).catch(async (error: unknown) => {
    machine.processes.delete(id)
    await undo(host, machine, held)
    throw error
  })
  return held
}

async function begin(
  host: EngineContext,
  machine: Machine,
  held: Held,
  request: ProcessRequest,
  forgotten: Forgotten[],
): Promise<void> {
  const { spec, generation } = machine.record
  const kept = { run: host.paths.run(spec.id, generation).dir, process: request.id }
  for (const each of forgotten) await removeProcess(host.paths, each.machineId, each.id)
  await host.effect('engine.process.record', () => saveProcess(host.paths, spec.id, held.record))
  const [stdout, stderr, report] = [createPipe(), createPipe(), createPipe()]
  const pipes: Pipes = { stdout: stdout.readEnd, stderr: stderr.readEnd, report: report.readEnd }
  const writeEnds: Pipes = { stdout: stdout.writeEnd, stderr: stderr.writeEnd, report: report.writeEnd }
  const readers = openReaders(pipes)
  const input = inputOf(request)
  try {
    await host.effect('engine.process.keeper', async () => {
      held.keeper ??= startKeeper(host.paths, kept, pipes)
      if (input?.writeEnd !== undefined) held.input ??= startInputKeeper(host.paths, kept, input.writeEnd)
    })
    // In the service's own group, or that of its pod, they would end with it.
    for (const { pid } of [held.keeper, held.input].filter((keeper) => keeper !== null))
      await limitLogWriter(host.cgroups, spec.networkGroup, pid)
    let launched: Promise<void> | null = null
    await host.effect('engine.process.launch', async () => {
      launched ??= launch(host, machine, { request, readers, writeEnds, stdin: input?.readEnd ?? null })
      await launched
    })
  } catch (error) {
    destroyReaders(readers)
    throw error
  } finally {
    for (const fd of [...Object.values(writeEnds), ...Object.values(input ?? {})]) closeFd(fd)
  }
  held.record.pid = readers.said().pid
  await saveProcess(host.paths, spec.id, held.record).catch((error: unknown) => {
    host.log.warn({ err: error, machine: spec.id }, 'which process one is was not written down')
  })
  follow(host, machine, held, readers)
}

/** A pipe holds as much as the input may have at first, so it is written at once. With its writing end if it stays open. */
function inputOf({ stdin, takesInput }: ProcessRequest): { readEnd: number; writeEnd?: number } | null {
  if (stdin === null && !takesInput) return null
  const { readEnd, writeEnd } = createPipe()
  for (let written = 0; stdin && written < stdin.length; ) written += writeSync(writeEnd, stdin, written)
  if (takesInput) return { readEnd, writeEnd }
  closeFd(writeEnd)
  return { readEnd }
}

/** Removes everything, since it may have started after all. */
async function undo(host: EngineContext, machine: Machine, held: Held): Promise<void> {
  const { record } = held
  const { id } = machine.record.spec
  const paths = host.paths.run(id, record.generation)
  closeReaders(held)
  held.ring.close()
  endKeepers(held)
  const forget = async () => removeChild(host.cgroups, paths.container, record.id)
  if (machine.record.state === 'running')
    await killExec(host, machine, paths, record.id, forget).catch((error: unknown) =>
      host.log.warn({ err: error, machine: id }, 'process of a start that failed was not killed'),
    )
  await retry(host, id, () => removeProcess(host.paths, id, record.id))
  Object.assign(record, { state: 'lost' })
  void reapOrphans()
  held.settled.resolve()
}

type Forgotten = { machineId: string; id: string }

/** Throws if all stored processes run; else deletes those that ended first, of the machine and of its team. */
function makeRoom(host: EngineContext, machine: Machine): Forgotten[] {
  const { networkGroup } = machine.record.spec
  const ofTeam = [...host.machines.values()].filter(({ record }) => record.spec.networkGroup === networkGroup)
  const one = oldestOver([machine], limits.processes, 'the machine')
  // What is deleted for the machine also counts for its team.
  const another = one ? null : oldestOver(ofTeam, limits.teamProcesses, 'the team')
  return [one, another]
    .flatMap((kept) => kept ?? [])
    .map(({ of, held }) => {
      of.processes.delete(held.record.id)
      return { machineId: of.record.spec.id, id: held.record.id }
    })
}

type Kept = { of: Machine; held: Held }

/** Returns null if there is room. */
function oldestOver(machines: Machine[], most: number, whose: string): Kept | null {
  const kept = machines.flatMap((of) => [...of.processes.values()].map((held) => ({ of, held })))
  if (kept.length < most) return null
  const over = kept.filter(({ held }) => held.record.state !== 'running')
  const [oldest] = over.toSorted((a, b) => endOf(a.held) - endOf(b.held))
  if (oldest) return oldest
  throw new EngineError('process_limit', `${most} processes of ${whose} run, which is the limit.`)
}

function endOf({ record }: Held): number {
  return record.endedAt?.getTime() ?? 0
}
