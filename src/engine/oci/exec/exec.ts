// Runs a command in a running machine. Its output goes through pipes to the caller, with backpressure; at its
// deadline all of its processes are killed, including daemonised children.
//
// A call always ends: a command that neither ends nor can be killed, because the sandbox is frozen or the runtime
// hangs, is abandoned a moment after its deadline, and the call returns without it.

import { randomBytes } from 'node:crypto'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { MachineRef, MachineStatus } from '../../engine.ts'
import type { ExecExit, ExecRequest } from '../../exec.ts'
import type { TerminalSignal, TerminalSize } from '../../terminal.ts'
import { EngineError, isEngineError } from '../../errors.ts'
import { commandIn } from './find-command.ts'
import { execProcess, type OciConfig, type Process, withEnv } from '../runtime/bundle.ts'
import { createChild, killAll, listChildren, removeChild } from '../kernel/cgroups.ts'
import { atExpenseOf } from '../kernel/team-groups.ts'
import { type Control, connectControl } from './control.ts'
import { launchDirectly } from './direct.ts'
import { signalInsideGvisor } from './kill.ts'
import { type Attempt, type ExecFiles, type Launch, launchExec } from './launch.ts'
import { launchTerminal } from './launch-terminal.ts'
import type { OnOutput, Stdin } from './pipes.ts'
import { getRunning, getRuntime, type EngineContext, type Machine } from '../context.ts'
import type { RunPaths } from '../paths.ts'
import type { Runtime } from '../runtime/runtime.ts'

const TIMED_OUT_CODE = 124
/** 128 + SIGKILL: the exit code of a command that ended with its machine. */
const KILLED_CODE = 137
const NOT_FOUND = 127
const NOT_EXECUTABLE = 126
/** How long a command waits for a machine that consecutive forks keep paused. */
const HELD_TIMEOUT_MS = 10_000
/** How long a killed command may take to end before the call returns without it. */
const LET_GO_AFTER_MS = 3000

/** As the engine's callers ask for it, and with an input that comes piece by piece. */
type Command = Omit<ExecRequest, 'stdin'> & { stdin: Stdin }

type Options = {
  asRoot?: boolean
  /** Runs it in a terminal of this size. */
  size?: TerminalSize | null
  /** Called with each attempt to start it, of which the last one counts. */
  onLaunched?: (attempt: Attempt) => void
}

/** What a terminal says it is, where the caller says nothing else: what all of today's are able to do. */
const TERM = 'xterm-256color'

export function execInMachine(
  host: EngineContext,
  ref: MachineRef,
  request: Command,
  onOutput: OnOutput,
  signal?: AbortSignal,
  options: Options = {},
): Promise<ExecExit> {
  return whenNotHeld(host, ref, () => execNow(host, ref, request, onOutput, signal, options))
}

/** Starts a command in a running machine, once no fork has it paused. */
export async function whenNotHeld<T>(
  host: EngineContext,
  ref: MachineRef,
  begin: () => Promise<T>,
): Promise<T> {
  const givesUpAt = performance.now() + HELD_TIMEOUT_MS
  for (;;) {
    await getRunning(host, ref).quiesced
    try {
      return await begin()
    } catch (error) {
      // It was being copied when the runtime looked: the command has not started, and may be tried again.
      const isHeld = isEngineError(error, 'frozen') && !getRunning(host, ref).frozen
      if (!isHeld || performance.now() > givesUpAt) throw error
    }
  }
}

async function execNow(
  host: EngineContext,
  ref: MachineRef,
  request: Command,
  onOutput: OnOutput,
  signal: AbortSignal | undefined,
  { asRoot = false, size = null, onLaunched }: Options,
): Promise<ExecExit> {
  const machine = getRunning(host, ref)
  const runtime = getRuntime(host, machine.record.spec.isolation)
  const paths = host.paths.run(ref.id, ref.generation)
  const name = `exec-${randomBytes(6).toString('hex')}`
  const files = filesOf(paths, name)
  const mainProcess = await loadProcess(machine, paths)
  const { cwd = null, env = {} } = request
  const described = execProcess(
    { ...mainProcess, env: withEnv(mainProcess.env, size === null ? env : { TERM, ...env }) },
    // Of a command in a terminal, the machine itself says that it is not there: the runtime's words would be lost.
    cwd === null && size === null ? request.argv : commandIn(cwd ?? '', request.argv),
    { ...(runtime.class === 'gvisor' ? { env: [markerOf(name)] } : {}), asRoot },
  )
  const control = size === null ? await controlOf(runtime, paths) : null
  const inTerminal = size && { terminal: true, consoleSize: { width: size.columns, height: size.rows } }
  // The file says to the next engine that this command was begun; only the runtime reads what is in it.
  const description = control ? '' : JSON.stringify({ ...described, ...inTerminal })
  await writeFile(files.processFile, description, { mode: 0o600 })

  const cgroupChild = runtime.execDetaches ? commandGroup(host, paths, name) : null
  const kill = () => killExec(host, machine, paths, name)
  const charge = atExpenseOf(host.cgroups, machine.record.spec.networkGroup)
  const { stdin } = request
  try {
    const launch = {
      runtime,
      charge,
      paths,
      files,
      cgroupChild,
      stdin,
      onOutput,
      kill,
      signalInside: (asked: TerminalSignal) => signalInside(host, machine, paths, name, asked),
    }
    const attempt = attemptOf(launch, described, { size, control })
    onLaunched?.(attempt)
    return await untilEnd(host, machine, attempt, { ref, request, onOutput, kill, signal })
  } finally {
    await removeFiles(files)
    if (cgroupChild) removeChild(host.cgroups, paths.container, name)
  }
}

/** Begins a command in a terminal, by the sandbox's own socket, or with the runtime. */
function attemptOf(
  launch: Launch,
  process: Process,
  { size, control }: { size: TerminalSize | null; control: Control | null },
): Attempt {
  if (size !== null) return launchTerminal({ ...launch, size })
  if (control === null) return launchExec(launch)
  return launchDirectly({ ...launch, control, container: launch.paths.container, process })
}

/** Returns null if the command is for the runtime's own exec. */
async function controlOf({ commands, ...runtime }: Runtime, paths: RunPaths): Promise<Control | null> {
  const { program, otherwise } = commands
  if (program === null) return null
  const control = await connectControl(runtime.root, paths.container)
  // A sandbox that an earlier engine started may run an older program.
  if (control && control.program.dev === program.dev && control.program.ino === program.ino) return control
  control?.close()
  if (otherwise) return null
  throw new EngineError('not_running', 'The machine takes no commands.')
}

/**
 * Kills the commands of an earlier engine, whose output and deadlines are no longer handled. A child that a finished
 * command left behind is not killed, and keeps its group.
 */
export async function killAbandonedExecs(
  host: EngineContext,
  machine: Machine,
  paths: RunPaths,
): Promise<void> {
  const files = await readdir(paths.execs).catch((): string[] => [])
  const running = files.flatMap((file) => /^(exec-.+)\.json$/.exec(file)?.[1] ?? [])
  for (const name of running) {
    const forget = async () => {
      // Its description last: as long as it exists, the next engine tries again.
      removeChild(host.cgroups, paths.container, name)
      await removeFiles(filesOf(paths, name))
    }
    killExec(host, machine, paths, name, forget).catch((error: unknown) =>
      host.log.warn({ err: error }, 'abandoned command was not killed'),
    )
  }
  for (const name of listChildren(host.cgroups, paths.container)) {
    if (!running.includes(name)) removeChild(host.cgroups, paths.container, name)
  }
}

/** A command that cannot be killed because its machine is frozen is killed when it is thawed. */
export async function killExec(
  host: EngineContext,
  machine: Machine,
  paths: RunPaths,
  name: string,
  afterwards: () => Promise<void> = async () => {},
): Promise<void> {
  const isKilled = await tryToKill(host, machine, paths, name)
  if (!isKilled && machine.frozen) machine.onThaw.push(() => killExec(host, machine, paths, name, afterwards))
  else await afterwards()
}

async function tryToKill(
  host: EngineContext,
  machine: Machine,
  paths: RunPaths,
  name: string,
): Promise<boolean> {
  const runtime = getRuntime(host, machine.record.spec.isolation)
  if (runtime.execDetaches) return await killAll(host.cgroups, paths.container, name)
  // A frozen sandbox runs no helper.
  if (machine.frozen) return false
  const main = await loadProcess(machine, paths)
  return await signalInsideGvisor(runtime, paths.container, markerOf(name), main, paths.execs)
}

/** A sandbox that does not answer is not waited for. */
async function signalInside(
  host: EngineContext,
  machine: Machine,
  paths: RunPaths,
  name: string,
  signal: TerminalSignal,
): Promise<void> {
  if (machine.frozen) return
  const runtime = getRuntime(host, machine.record.spec.isolation)
  const main = await loadProcess(machine, paths)
  await signalInsideGvisor(runtime, paths.container, markerOf(name), main, paths.execs, signal).catch(
    (error: unknown) => host.log.warn({ err: error }, 'a command was not signalled'),
  )
}

/** In the environment of a command in gVisor, where the host sees no process: it is found by this. */
export function markerOf(name: string): string {
  return `BERTH_EXEC=${name}`
}

function filesOf(paths: RunPaths, name: string): ExecFiles {
  return { processFile: join(paths.execs, `${name}.json`), pidFile: join(paths.execs, `${name}.pid`) }
}

type Call = {
  ref: MachineRef
  request: Command
  onOutput: OnOutput
  kill: () => Promise<void>
  signal: AbortSignal | undefined
}

async function untilEnd(
  host: EngineContext,
  machine: Machine,
  attempt: Attempt,
  call: Call,
): Promise<ExecExit> {
  let timedOut = false
  const timers: NodeJS.Timeout[] = []
  const after = (ms: number, work: () => void) => void timers.push(setTimeout(work, ms))
  const kill = () => {
    call.kill().catch((error: unknown) => host.log.warn({ err: error }, 'command was not killed'))
  }
  const end = () => {
    attempt.cancel()
    kill()
    after(LET_GO_AFTER_MS, () => {
      // Whatever delayed it may have delayed its start.
      kill()
      attempt.letGo()
    })
  }
  const onRunEnded = ({ id }: MachineStatus) => {
    if (id === call.ref.id) after(LET_GO_AFTER_MS, attempt.letGo)
  }
  after(call.request.timeoutMs, () => {
    timedOut = true
    end()
  })
  // No one reads the output any more, so the command is ended.
  attempt.readerFailed.catch(end)
  call.signal?.addEventListener('abort', end, { once: true })
  host.events.on('ended', onRunEnded)
  try {
    const outcome = await attempt.outcome
    if (timedOut) return { exitCode: TIMED_OUT_CODE, timedOut }
    const isRunEnding = machine.ending || machine.record.generation !== call.ref.generation
    const hasEnded = isRunEnding || machine.record.state !== 'running'
    if (outcome.kind === 'not-started') {
      if (hasEnded) throw new EngineError('not_running', 'The machine is being ended.')
      return await reportNotStarted(call, outcome.complaint)
    }
    const exitCode = outcome.kind === 'ended' ? (outcome.exitCode ?? KILLED_CODE) : KILLED_CODE
    if (exitCode === KILLED_CODE && isRunEnding) {
      throw new EngineError('run_ended', 'The machine was ended while the command ran.')
    }
    return { exitCode, timedOut }
  } finally {
    for (const timer of timers) clearTimeout(timer)
    call.signal?.removeEventListener('abort', end)
    host.events.off('ended', onRunEnded)
  }
}

/** A command that cannot be executed ends as in a shell: 127 or 126, with the reason on stderr. */
async function reportNotStarted({ request, onOutput }: Call, complaint: string): Promise<ExecExit> {
  // It was frozen between our check and the runtime's.
  if (/paused container/.test(complaint)) throw new EngineError('frozen', 'The machine is frozen.')
  const command = request.argv[0] ?? ''
  const denied = /permission denied|exec format error|is a directory/i.test(complaint)
  const why = denied ? 'cannot be executed' : 'command not found'
  await onOutput({ stream: 'stderr', data: Buffer.from(`${command.slice(0, 200)}: ${why}\n`) })
  return { exitCode: denied ? NOT_EXECUTABLE : NOT_FOUND, timedOut: false }
}

/** A group of the exec's own below the machine's, so that exactly its processes can be killed. */
export function commandGroup(host: EngineContext, paths: RunPaths, name: string): string {
  createChild(host.cgroups, paths.container, name)
  return host.cgroups.version === 1 ? `freezer:${name}` : name
}

export async function loadProcess(machine: Machine, paths: RunPaths): Promise<Process> {
  machine.process ??= (JSON.parse(await readFile(paths.config, 'utf8')) as OciConfig).process
  return machine.process
}

async function removeFiles({ processFile, pidFile }: ExecFiles): Promise<void> {
  await Promise.all([rm(processFile, { force: true }), rm(pidFile, { force: true })])
}
