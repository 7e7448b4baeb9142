// Has a runtime start one command, with real pipes for its inputs and outputs (kernel/pipes.ts). What becomes of it is for
// launch.ts. runc passes our pipes on and exits, so that the command becomes our child; runsc stays until the command
// ends, and has its own pipe for its messages: output of a command is never taken for the runtime's, nor the reverse.

import type { Socket } from 'node:net'
import { SAFE_PATH } from '../../../lib/process.ts'
import { type Launching, trackLaunch } from './launching.ts'
import { openReader, type Reader } from '../kernel/pipes.ts'
import { type Program, startProgram } from '../kernel/programs.ts'
import { closeFd, createPipe } from '../kernel/syscalls.ts'
import type { Charge } from '../kernel/team-groups.ts'
import type { RunPaths } from '../paths.ts'
import type { Driver, ExecFiles } from './driver.ts'

export type Start = {
  driver: Driver
  /** Whose expense the runtime runs at. */
  charge: Charge
  paths: RunPaths
  files: ExecFiles
  /** The command's own group, if it has one. */
  cgroupChild: string | null
  /** Of its machine. */
  launching: Launching
}

export type Readers = {
  stdout: Reader
  stderr: Reader
  /** The runtime's messages; also the command's stderr, if the runtime exits before it runs. */
  complaints: Reader
}

/** The runtime's own process; `launched` resolves with its exit code. */
export type Launched = { launcher: Program; launched: Promise<number> }

/** An exec that is being started, with pipes that are not read or written yet. */
export type StartedExec = {
  /** Null: no runtime started it. */
  launcher: Program | null
  launched: Promise<number>
  /** Where it is already known that it runs, and waited for that it ends. */
  running: { pid: number; exited: Promise<number | null> } | null
  readers: Readers
  /** The ends to write to, of standard input and of what comes after standard error. */
  inputs: number[]
}

const NOT_EXECUTABLE = 126
/** The descriptor at which runsc finds the pipe for the command's stderr. */
const COMMAND_STDERR_FD = 3
/** The next one where there is none for messages. */
const FOURTH_FD = 3

/** `extraInput`: with a second input as the fourth descriptor; only runc passes that on. */
export function startExec(
  start: Start,
  { hasStdin, extraInput = false }: { hasStdin: boolean; extraInput?: boolean },
): StartedExec {
  const { driver, paths, files, cgroupChild } = start
  const [stdout, stderr] = [createPipe(), createPipe()]
  const complaints = driver.execDetaches ? null : createPipe()
  const stdin = hasStdin ? createPipe() : null
  const extra = extraInput ? createPipe() : null
  const args = driver.execArgs(paths.container, files, {
    cgroupChild,
    stderrFd: complaints && COMMAND_STDERR_FD,
    extraFd: extra && FOURTH_FD,
  })
  const outputs = [stdout, ...(complaints ? [complaints] : []), stderr].map(({ writeEnd }) => writeEnd)
  const inputs = [stdin, extra].filter((pipe) => pipe !== null)
  const stdio = [stdin?.readEnd ?? null, ...outputs, ...(extra ? [extra.readEnd] : [])]
  const { launcher, launched } = launchRuntime(start, args, stdio)
  for (const fd of [...outputs, ...inputs.map(({ readEnd }) => readEnd)]) closeFd(fd)
  const commandStderr = openReader(stderr.readEnd)
  const readers = {
    stdout: openReader(stdout.readEnd),
    stderr: commandStderr,
    complaints: complaints ? openReader(complaints.readEnd) : commandStderr,
  }
  return { launcher, launched, running: null, readers, inputs: inputs.map(({ writeEnd }) => writeEnd) }
}

export function launchRuntime(
  { driver, charge, launching }: Start,
  args: string[],
  stdio: (number | null)[],
): Launched {
  const [command, commandArgs] = charge(driver.binary, args)
  const launcher = startProgram(command, commandArgs, { env: { PATH: SAFE_PATH }, stdio })
  const launched = launcher.ended.then(({ exitCode }) => exitCode ?? NOT_EXECUTABLE)
  // runsc stays until the command ends, outside the machine: a freeze does not stop it.
  if (driver.execDetaches) trackLaunch(launching, launched)
  return { launcher, launched }
}

/** Returns the runtime's exit code; null if it failed or hung, which ends it. */
export async function launchedWithin(
  { launcher, launched }: Pick<StartedExec, 'launcher' | 'launched'>,
  timeoutMs: number,
): Promise<number | null> {
  const timer = setTimeout(() => launcher?.kill(), timeoutMs)
  const code = await launched.catch(() => null)
  clearTimeout(timer)
  return code
}

export function destroyReaders(readers: Record<string, Socket>): void {
  for (const reader of Object.values(readers)) reader.destroy()
}
