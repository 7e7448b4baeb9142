// Runs a command in a running machine. Its output goes through pipes to the caller, with backpressure; at its
// deadline all of its processes are killed, including daemonised children.
//
// A call always ends: a command that neither ends nor can be killed, because the sandbox is frozen or the runtime
// hangs, is abandoned a moment after its deadline, and the call returns without it.

import { writeFileSync } from 'node:fs'
import type { MachineRef } from '../../engine.ts'
import type { ExecExit, ExecRequest } from '../../exec.ts'
import type { TerminalSignal, TerminalSize } from '../../terminal.ts'
import { isEngineError } from '../../errors.ts'
import { commandIn } from '../machine-programs/start.ts'
import { type Account, execProcess, type Process, withEnv } from '../runtime/bundle.ts'
import { removeChild } from '../kernel/cgroup-children.ts'
import { atExpenseOf } from '../kernel/team-groups.ts'
import { controlOf, launchDirectly } from './direct.ts'
import {
  commandGroup,
  filesOf,
  loadProcess,
  markerOf,
  newExecName,
  removeFiles,
  withMarker,
} from './command.ts'
import { killExec, signalInside } from './kill-command.ts'
import type { Attempt } from '../runtime/attempt.ts'
import { type Launch, launchExec } from './launch.ts'
import { untilEnd } from './until-end.ts'
import { askWorker, takeWorker } from './workers.ts'
import { launchStandby, prepareStandby, takeStandby } from './standby.ts'
import { standbyScript } from './standby-script.ts'
import { launchTerminal } from './launch-terminal.ts'
import { leaveBehind } from './left-behind.ts'
import type { OnOutput, Stdin } from '../kernel/pipes.ts'
import { driverOf, getRunning, type EngineContext, type Machine } from '../machine/context.ts'
import { endStartup } from '../machine/startup.ts'
import type { RunPaths } from '../paths.ts'
import { throughRelay } from '../machine-programs/relay.ts'

/** How long a command waits for a machine that consecutive forks keep paused. */
const HELD_TIMEOUT_MS = 10_000

/** The request of the engine's caller, with an input that arrives piece by piece. */
type Command = Omit<ExecRequest, 'stdin' | 'user'> & { stdin: Stdin; account?: Account | null }

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
  const driver = driverOf(host, machine)
  const paths = host.paths.run(ref.id, ref.generation)
  const { cwd = null, argv, stdin, account = null, worker: isWorker = false } = request
  const described = await processOf(machine, paths, request, { asRoot, size })
  if (isWorker && Buffer.isBuffer(stdin)) {
    const worker = await takeWorker(host, machine, described)
    if (worker) return await askWorker(host, machine, worker, { ref, request, stdin, onOutput, signal })
  }
  const kind = asRoot ? 'root' : 'user'
  const asked = { argv, env: described.env, cwd: cwd ?? described.cwd, hasStdin: stdin !== null }
  const isPlain = size === null && account === null
  // The helper, which alone is root's, writes the rest of what was cut short. A terminal is no pipe.
  const isRelayed = driver.cutsWrites && !asRoot && !isWorker && size === null
  const script = isPlain && driver.execDetaches ? standbyScript(asked) : null
  const standby = script === null ? null : await takeStandby(host, machine, kind, ref.generation)
  const name = standby?.name ?? newExecName()
  const files = filesOf(paths, name)
  const cgroupChild = driver.execDetaches ? commandGroup(host, paths, name) : null
  const kill = () => killExec(host, machine, paths, name)
  const signalIt = (which: TerminalSignal) => signalInside(host, machine, paths, name, which)
  const charge = atExpenseOf(host.cgroups, machine.record.spec.networkGroup)
  const { launching } = machine
  const start = { driver, charge, paths, files, cgroupChild, launching }
  const leave = (fds: number[]) => leaveBehind(host, machine, fds)
  const launch = { ...start, stdin, onOutput, kill, signalInside: signalIt, leave }
  try {
    const attempt =
      standby && script !== null
        ? launchStandby(standby, script, launch)
        : await begin(launch, described, { name, cwd, size, isRelayed })
    onLaunched?.(attempt)
    const exit = await untilEnd(host, machine, attempt, { ref, request, onOutput, kill, signal })
    if (request.probe && exit.exitCode === 0 && !exit.timedOut) endStartup(host, machine, ref.generation)
    return exit
  } finally {
    removeFiles(files)
    if (cgroupChild) removeChild(host.cgroups, paths.container, name)
    if (script !== null) prepareStandby(host, machine, kind)
  }
}

/** Returns the command's description, in the main process's directory. */
async function processOf(
  machine: Machine,
  paths: RunPaths,
  { argv, env = {}, account = null }: Command,
  { asRoot, size }: { asRoot: boolean; size: TerminalSize | null },
): Promise<Process> {
  const main = await loadProcess(machine, paths)
  const own = { ...main, env: withEnv(main.env, size === null ? env : { TERM, ...env }) }
  return execProcess(own, argv, { asRoot, account })
}

type Started = {
  name: string
  cwd: string | null
  size: TerminalSize | null
  isRelayed: boolean
}

/** Begins a command in a terminal, by the sandbox's own socket, or with the runtime. */
async function begin(
  launch: Launch,
  { args, ...rest }: Process,
  { name, cwd, size, isRelayed }: Started,
): Promise<Attempt> {
  const { driver, paths, files } = launch
  // Of a command in a terminal, the machine itself says that it is not there: the runtime's words would be lost.
  const command = { ...rest, args: cwd === null && size === null ? args : commandIn(cwd ?? '', args) }
  const mark = isRelayed ? throughRelay : withMarker
  const described = driver.execDetaches ? command : mark(command, markerOf(name))
  const control = size === null ? await controlOf(driver, paths) : null
  const inTerminal = size && { terminal: true, consoleSize: { width: size.columns, height: size.rows } }
  // The file says to the next engine that this command was begun; only the runtime reads what is in it.
  const description = control ? '' : JSON.stringify({ ...described, ...inTerminal })
  // It is in memory: to have another thread do it takes longer.
  writeFileSync(files.processFile, description, { mode: 0o600 })
  if (size !== null) return launchTerminal({ ...launch, size })
  if (control === null) return launchExec(launch)
  return launchDirectly({ ...launch, control, container: paths.container, process: described })
}
