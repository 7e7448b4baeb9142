// What the engine needs of an isolation class: how one of its programs is probed, starts, runs commands, keeps memory, and is
// forgotten. Each class has a driver (runc.ts, gvisor.ts). Nothing else asks for a class by its name: what differs is said
// here, or, where no program is needed to know it, in traits.ts.
//
// Freezing, thawing, killing and the report of an end are the same for all: the kernel's groups, and conmon (monitor.ts).

import type { RunResult } from '../../../lib/process.ts'
import type { IsolationClass } from '../../engine.ts'
import type { Program } from './control.ts'
import type { RunPaths } from '../paths.ts'

export type Limits = { timeoutMs: number; signal: AbortSignal }
export type Started = { kind: 'started' } | { kind: 'failed'; reason: string }

export type Driver = {
  class: IsolationClass
  version: string
  /** Names its program among those that this engine keeps (kept-programs.ts); null where the class has one program. */
  program: string | null
  binary: string
  /** The program that creates and starts containers: it may be a wrapper of `binary`. */
  launcher: string
  /** The directory of its container state. */
  root: string
  globalArgs: string[]
  /** It passes our pipes on and exits; otherwise it stays until the command ends. */
  execDetaches: boolean
  /** What its machines write at once to a pipe of the host may be cut short: output goes through the relay (relay.c). */
  cutsWrites: boolean
  /** How its sandboxes are asked for commands, if not by the program alone. */
  commands: CommandWays
  /** The timeout of a call: far longer than one takes on a busy host. */
  deadlineMs: number
  /**
   * How much of a machine's log conmon writes before it starts a new file: this limits a log while no engine rotates
   * it (decisions/disks-and-logs.md).
   */
  logFileBytes: number
  /** Null: no probe has shown that it can keep the memory of its machines. */
  memory: Memory | null
  /** What starts machines in which containers may run, as a probe has shown; null: none, and why. */
  nested: { driver: Driver; why: null } | { driver: null; why: string }
  /** Starts a created container. Repeating it succeeds. */
  start(run: Pick<RunPaths, 'container' | 'pid'>, signal: AbortSignal): Promise<Started>
  /** Sends SIGTERM to the first process of a container. */
  terminate(container: string, signal: AbortSignal): Promise<RunResult>
  /** Returns the arguments of an exec whose process is described in a file; the pid file appears once it runs. */
  execArgs(container: string, files: ExecFiles, options?: ExecOptions): string[]
  /**
   * Returns the arguments of an exec in a terminal, whose master comes over a unix socket. The process of the pid file is
   * then an orphan, and ends as the command does.
   */
  terminalArgs(
    container: string,
    files: ExecFiles & { consoleSocket: string },
    cgroupChild: string | null,
  ): string[]
}

/** How a class saves the memory of its machines, and restores it in a new run of them or of a copy. */
export type Memory = {
  /** With what it is saved: nothing else can restore it. */
  madeWith: string
  /** How its machines stand still while they are saved. Null: frozen. */
  standing: Standing | null
  /** How long a machine is expected to stand, and how long one that is copied may. */
  saving: { ms: number; msPerGb: number; mostMs: number; giveUpMs: number }
  /** What the configuration of each run must say for it. */
  inConfig(config: object): object
  /**
   * Writes the memory of a container that stands to a directory. It goes on standing; if it is to end after that, it may end by
   * itself with any exit code.
   */
  save(container: string, directory: string, limits: Limits & { ends: boolean }): Promise<void>
  /** What conmon needs to restore it in a network namespace, under a host name. */
  prepare(directory: string, hostname: string, networkNamespace: string): Promise<Restored>
  /** Whether a command ends well in a container that was just restored. */
  answers(container: string, command: string[], signal: AbortSignal): Promise<boolean>
  /** Ends what commands have begun in a container, and what that has left, if a restored one would have it as something else. */
  endCommands(container: string, signal: AbortSignal): Promise<void>
  /** Tells a copy that was restored who it is, where its own kernel would not notice what the host has written. Null: the host does. */
  introduce: ((container: string, who: Introduction, signal: AbortSignal) => Promise<void>) | null
  /** What it has written about a restore that failed, below the directory of the run; empty without anything. */
  complaint(directory: string): Promise<string>
}

/** Files by name, and how many forks it is away from its first ancestor. */
export type Introduction = { files: [path: string, content: string][]; forkGeneration: number }

/** Of a class whose machines save themselves, which they cannot do frozen: what runs in them stands still, and they go on. */
export type Standing = {
  /** `thaw`: called once a machine that is frozen has been told, so that what runs in it goes on for milliseconds at most. */
  hold(container: string, thaw: () => void, signal: AbortSignal): Promise<void>
  /** Only of one that is held. One that was frozen meanwhile goes on as soon as it is thawed, and is not waited for. */
  release(container: string, isFrozen: boolean): Promise<void>
  /** Whether one is held. */
  isHeld(container: string): Promise<boolean>
}

/** The checkpoint to restore instead of creating a container. `searchPath`: the PATH with what restores it. */
export type Restored = { directory: string; searchPath: string }

export type ExecFiles = { processFile: string; pidFile: string }

/**
 * `stderrFd`: the program's descriptor that gVisor gives the command as its stderr, so that its own stderr has only its own
 * messages. runc prints nothing once the command could start; warnings before that would look like the command's.
 * `extraFd`: the program's descriptor that the command gets as its fourth one; for runc it must be the fourth.
 */
export type ExecOptions = { cgroupChild?: string | null; stderrFd?: number | null; extraFd?: number | null }

/**
 * `program`: what a sandbox must run to be asked directly, as a probe has shown (probes/control.ts); null: none is.
 * `otherwise`: whether the program's own exec is used where that is not so.
 */
export type CommandWays = { program: Program | null; otherwise: boolean }

export const byProgram: CommandWays = { program: null, otherwise: true }

export type DriverOptions = {
  runc: string
  /** Null: the first of those of the machine that passes its probe (runsc-candidates.ts). Otherwise this one alone. */
  runsc: string | null
  /** Tried before all others, where `runsc` is null. */
  preferredRunsc?: string | null
  deadlineMs: number
  logFileBytes: number
  /** Whether programs are kept for runs that outlive this process. Default: yes. */
  keepsPrograms?: boolean
  /** Programs to try; the first that works is used. Default: those of checkpoint/criu.ts. */
  criu?: string[]
  /** How commands get into gVisor: `direct` and `runsc` leave no choice. Default: `auto`, as the probe decides. */
  gvisorCommands?: GvisorCommands
}

export const gvisorCommands = ['auto', 'direct', 'runsc'] as const
export type GvisorCommands = (typeof gvisorCommands)[number]

/** Where Debian installs them. */
export const driverDefaults: DriverOptions = {
  runc: '/usr/sbin/runc',
  runsc: null,
  deadlineMs: 30_000,
  logFileBytes: 128 * 1024 * 1024,
}

export function driverOptions(config: {
  criu: string | null
  runsc: string | null
  gvisorCommands: GvisorCommands
}): DriverOptions {
  const { criu, runsc, gvisorCommands } = config
  return {
    ...driverDefaults,
    gvisorCommands,
    preferredRunsc: runsc,
    ...(criu === null ? {} : { criu: [criu] }),
  }
}
