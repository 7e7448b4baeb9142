// Starts one exec with its runtime (start-exec.ts), reads and writes its pipes, and waits for its outcome.

import { existsSync, readFileSync } from 'node:fs'
import { boundedText } from '../../../lib/bounded-text.ts'
import { waitForChild } from '../kernel/children.ts'
import { drain, feed, type OnOutput, type Pump, pump, type Reader, type Stdin } from '../kernel/pipes.ts'
import {
  destroyReaders,
  type Readers,
  type Start,
  startExec,
  type StartedExec,
} from '../runtime/start-exec.ts'
import type { TerminalSignal } from '../../terminal.ts'
import type { Attempt, Outcome } from '../runtime/attempt.ts'
import { closeFd } from '../kernel/syscalls.ts'

export type Launch = Start & {
  stdin: Stdin
  onOutput: OnOutput
  kill: () => Promise<void>
  /** Is given the pipes that processes which the command left behind may still write to. */
  leave: (fds: number[]) => void
  /** Signals the command where it runs, if the host has no process of its own for it. */
  signalInside: (signal: TerminalSignal) => Promise<void>
}

/** runsc's exit code if it cannot wait for the command; a command may also exit with it. */
const RUNSC_FAILED = 128
const MAX_COMPLAINT = 4096

type Following = Launch &
  Watch &
  Readers & {
    launched: Promise<number>
    running: StartedExec['running']
    onBegun: (pid: number) => void
  }

export function launchExec(launch: Launch): Attempt {
  return followExec(startExec(launch, { hasStdin: launch.stdin !== null }), launch)
}

/** Reads and writes its pipes and waits for its outcome. `stdinFd`: which of its inputs is the command's. */
export function followExec(
  { launcher, launched, running, readers, inputs }: StartedExec,
  launch: Launch,
  stdinFd: number | undefined = inputs[0],
): Attempt {
  const { driver } = launch
  const input =
    launch.stdin && stdinFd !== undefined ? openInput(stdinFd, launch.stdin, driver.execDetaches) : null
  const begun = Promise.withResolvers<number>()
  let pid: number | null = null
  const onBegun = (begunPid: number) => {
    pid = begunPid
    input?.begin()
    begun.resolve(begunPid)
  }
  const follow = driver.execDetaches ? followDetached : followAttached
  return attempt({
    follow: (watch) =>
      follow({ ...launch, ...readers, ...watch, launched, running, onBegun }).finally(() => (pid = null)),
    abandon: () => launcher?.kill(),
    close: () => {
      input?.giveUp()
      destroyReaders(readers)
    },
    signal: (signal) => {
      if (signal === 'KILL') void launch.kill()
      else if (!driver.execDetaches) void launch.signalInside(signal)
      // Until it is reaped, which is when `pid` is forgotten, nothing else has its number.
      else void begun.promise.then(() => pid !== null && signalGroup(pid, signal))
    },
  })
}

/** What the code that follows a command must heed. */
export type Watch = { isCancelled: () => boolean; onReaderFailed: (error: unknown) => void }

/** `abandon` ends what waits for the command, `close` its pipes. */
export function attempt(command: {
  follow: (watch: Watch) => Promise<Outcome>
  abandon: () => void
  close: () => void
  signal: Attempt['signal']
}): Attempt {
  let cancelled = false
  const letGo = Promise.withResolvers<Outcome>()
  const readerFailed = Promise.withResolvers<never>()
  readerFailed.promise.catch(() => {})
  const followed = command.follow({ isCancelled: () => cancelled, onReaderFailed: readerFailed.reject })
  return {
    outcome: Promise.race([followed, letGo.promise]).finally(command.close),
    readerFailed: readerFailed.promise,
    cancel: () => void (cancelled = true),
    letGo: () => {
      command.abandon()
      // The reader's own error is more useful than that its command hung.
      void Promise.race([readerFailed.promise, Promise.resolve()]).then(
        () => letGo.resolve({ kind: 'let-go' }),
        letGo.reject,
      )
    },
    signal: command.signal,
    resize: () => {},
  }
}

/** Signals a process group, which may be gone. */
export function signalGroup(pid: number, signal: TerminalSignal): void {
  try {
    process.kill(-pid, `SIG${signal}`)
  } catch {}
}

type Input = { begin: () => void; giveUp: () => void }

/**
 * Bytes that come while the command runs are written once it does: before that, its start may have to be tried again. A
 * runtime that stays is not tried again.
 */
function openInput(fd: number, content: NonNullable<Stdin>, detaches: boolean): Input {
  let waiting = true
  const begin = () => {
    if (!waiting) return
    waiting = false
    feed(fd, content)
  }
  const giveUp = () => {
    if (waiting) closeFd(fd)
    waiting = false
  }
  if (Buffer.isBuffer(content) || !detaches) begin()
  return { begin, giveUp }
}

async function followDetached(exec: Following): Promise<Outcome> {
  // Reading starts only then: until here, the pipe may contain the runtime's own error.
  const pid = exec.running?.pid ?? (await launchedPid(exec))
  if (pid === null) return { kind: 'not-started', complaint: await readComplaint(exec.complaints) }
  exec.onBegun(pid)
  if (exec.isCancelled()) await exec.kill()
  const pumps = pumpsOf(exec)
  const exitCode = await (exec.running?.exited ?? waitForChild(pid))
  await drain(pumps, exec.leave)
  return { kind: 'ended', exitCode }
}

async function launchedPid({ launched, files }: Following): Promise<number | null> {
  return (await launched) === 0 ? readPid(files.pidFile) : null
}

async function followAttached(exec: Following): Promise<Outcome> {
  const pumps = pumpsOf(exec)
  const complaints = complaintsIn(exec.complaints)
  const exitCode = await exec.launched
  await Promise.all([drain(pumps, exec.leave), drain([complaints.pump])])
  const complaint = complaints.soFar()
  if (!existsSync(exec.files.pidFile)) return { kind: 'not-started', complaint }
  const isLost = exitCode === RUNSC_FAILED && complaint !== ''
  return { kind: 'ended', exitCode: isLost ? null : exitCode }
}

export function pumpsOf(exec: Pick<Following, 'stdout' | 'stderr' | 'onOutput' | 'onReaderFailed'>): Pump[] {
  const pumps = [pump('stdout', exec.stdout, exec.onOutput), pump('stderr', exec.stderr, exec.onOutput)]
  for (const one of pumps) one.ended.catch(exec.onReaderFailed)
  return pumps
}

async function readComplaint(stderr: Reader): Promise<string> {
  const complaints = complaintsIn(stderr)
  await drain([complaints.pump])
  return complaints.soFar()
}

function complaintsIn(stderr: Reader): { pump: Pump; soFar: () => string } {
  const complaint = boundedText(MAX_COMPLAINT)
  return { pump: pump('stderr', stderr, ({ data }) => complaint.add(data)), soFar: () => complaint.text() }
}

export function readPid(path: string): number | null {
  try {
    return Number(readFileSync(path, 'utf8'))
  } catch {
    return null
  }
}
