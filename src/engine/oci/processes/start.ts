// Starts a background process: its record, its pipes and their keeper, the runtime's exec. Each step can be undone,
// and a crash in between leaves a process that is `lost`, which the next engine ends.

import { writeSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { limits } from '../../../contract/limits.ts'
import { boundedText } from '../../../lib/bounded-text.ts'
import { SAFE_PATH } from '../../../lib/process.ts'
import type { MachineRef } from '../../engine.ts'
import type { MachineProcess, ProcessRequest as AskedProcess } from '../../process.ts'
import { EngineError } from '../../errors.ts'
import { removeChild } from '../kernel/cgroup-children.ts'
import { reapOrphans } from '../kernel/children.ts'
import { startProgram, whenClosed } from '../kernel/programs.ts'
import { closeFd, createPipe } from '../kernel/syscalls.ts'
import { atExpenseOf } from '../kernel/team-groups.ts'
import { getRunning, driverOf, type EngineContext, type Machine } from '../machine/context.ts'
import { commandGroup, loadProcess, markerOf } from '../exec/command.ts'
import { asUser } from '../exec/as-user.ts'
import { whenNotHeld } from '../exec/exec.ts'
import { killExec } from '../exec/kill-command.ts'
import { openReader } from '../kernel/pipes.ts'
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
import type { Held, Readers } from './held-process.ts'
import { type Pipes, startInputKeeper, startKeeper } from './keeper.ts'
import { type ProcessRecord, removeProcess, saveProcess } from './record.ts'
import { wrappedProcess } from './wrapper.ts'

const COMPLAINT_BYTES = 4096

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
  const { dir } = host.paths.run(spec.id, generation)
  for (const each of forgotten) await removeProcess(host.paths, each.machineId, each.id)
  await host.effect('engine.process.record', () => saveProcess(host.paths, spec.id, held.record))
  const [stdout, stderr, report] = [createPipe(), createPipe(), createPipe()]
  const pipes: Pipes = { stdout: stdout.readEnd, stderr: stderr.readEnd, report: report.readEnd }
  const writeEnds: Pipes = { stdout: stdout.writeEnd, stderr: stderr.writeEnd, report: report.writeEnd }
  const readers = openReaders(pipes)
  const input = inputOf(request)
  try {
    await host.effect('engine.process.keeper', async () => {
      held.keeper ??= startKeeper(dir, request.id, pipes)
      if (input?.writeEnd !== undefined) held.input ??= startInputKeeper(dir, request.id, input.writeEnd)
    })
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

type Launch = { request: ProcessRequest; readers: Readers; writeEnds: Pipes; stdin: number | null }

/** Until it reports its pid. */
async function launch(host: EngineContext, machine: Machine, given: Launch): Promise<void> {
  const { request, readers } = given
  const { spec, generation } = machine.record
  const paths = host.paths.run(spec.id, generation)
  const files = {
    processFile: join(paths.execs, `${request.id}.json`),
    pidFile: join(paths.execs, `${request.id}.pid`),
  }
  const described = wrappedProcess(await loadProcess(machine, paths), {
    ...request,
    marker: markerOf(request.id),
    isRelayed: driverOf(host, machine).cutsWrites,
  })
  await writeFile(files.processFile, JSON.stringify(described), { mode: 0o600 })
  const late = new AbortController()
  try {
    const launcher = spawnRuntime(host, machine, given, files)
    const tooLate = delay(driverOf(host, machine).deadlineMs, undefined, { signal: late.signal })
    await Promise.race([readers.begun, launcher.failed, machine.ended, tooLate.catch(() => {})])
    // The runtime's own messages are only read until the process starts: then they are the command's.
    if (readers.said().pid === null) {
      launcher.kill()
      throw notBegun(machine, generation, launcher.complaint())
    }
    await Promise.race([launcher.finish(), machine.ended, tooLate.catch(() => {})])
  } finally {
    late.abort()
    await Promise.all(Object.values(files).map((file) => rm(file, { force: true })))
  }
}

type Launcher = {
  /** Resolves when the runtime exits without having started the process. */
  failed: Promise<void>
  complaint: () => string
  kill: () => void
  /** The process has started: the runtime is not needed any more. */
  finish: () => Promise<void>
}

function spawnRuntime(
  host: EngineContext,
  machine: Machine,
  { request, readers, writeEnds, stdin }: Launch,
  files: { processFile: string; pidFile: string },
): Launcher {
  const { spec, generation } = machine.record
  const driver = driverOf(host, machine)
  const paths = host.paths.run(spec.id, generation)
  const { stdout, stderr, report } = writeEnds
  const cgroupChild = driver.execDetaches ? commandGroup(host, paths, request.id) : null
  // runsc has messages of its own while the command runs; runc has them before, on the command's stderr.
  const own = driver.execDetaches ? null : createPipe()
  const outputs = [stdout, ...(own ? [own.writeEnd] : []), stderr, report]
  const fds = driver.execDetaches ? { extraFd: 3 } : { stderrFd: 3, extraFd: 4 }
  const charge = atExpenseOf(host.cgroups, spec.networkGroup)
  const [command, args] = charge(
    driver.binary,
    driver.execArgs(paths.container, files, { cgroupChild, ...fds }),
  )
  const launcher = startProgram(command, args, { env: { PATH: SAFE_PATH }, stdio: [stdin, ...outputs] })
  if (own) closeFd(own.writeEnd)
  const messages = own && openReader(own.readEnd)
  const said = boundedText(COMPLAINT_BYTES)
  messages?.on('data', (data: Buffer) => said.add(data))
  const complaint = () => {
    if (!driver.execDetaches) return said.text()
    const read: unknown = readers.outputs[1]?.socket.read()
    return Buffer.isBuffer(read) ? read.toString('utf8', 0, COMPLAINT_BYTES) : ''
  }
  const over = Promise.all([launcher.ended, messages && whenClosed(messages)]).then(
    ([{ exitCode }]) => exitCode,
  )
  const failed = over.then(async (code) => {
    // runc exits once it has started the process.
    if (driver.execDetaches && code === 0) await new Promise(() => {})
  })
  failed.catch(() => {})
  const finish = async () => {
    // runsc would stay to the end, but is not needed: the process itself reports how it ends.
    if (!driver.execDetaches) launcher.kill()
    await over
  }
  return { failed, complaint, kill: launcher.kill, finish }
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

function notBegun(machine: Machine, generation: number, complaint: string): EngineError {
  const { record, ending, frozen } = machine
  if (ending || record.state !== 'running' || record.generation !== generation)
    return new EngineError('not_running', 'The machine is being ended.')
  if (frozen || /paused container/.test(complaint)) return new EngineError('frozen', 'The machine is frozen.')
  return new EngineError(
    'process_refused',
    'The machine could not start another process: it may have too many.',
    {
      cause: new Error(complaint),
    },
  )
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
