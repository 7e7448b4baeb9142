// Starts one exec with its runtime and follows it to its outcome. runc passes our pipes on and leaves, so that
// the command becomes our child; runsc stays until the command ends.

import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { killProcessGroup, SAFE_PATH } from '../../lib/process.ts'
import { waitForChild } from './children.ts'
import { drain, feed, type OnOutput, openReader, pump } from './exec-pipes.ts'
import type { RunPaths } from './paths.ts'
import { execArgs, type Runtime } from './runtime.ts'
import { closeFd, createPipe } from './syscalls.ts'

export type ExecFiles = { processFile: string; pidFile: string }

export type Launch = {
  runtime: Runtime
  paths: RunPaths
  files: ExecFiles
  /** The group of the command's own, where it has one. */
  cgroupChild: string | null
  stdin: Buffer | null
  onOutput: OnOutput
  kill: () => Promise<void>
}

/** `exitCode` null: it ended, and nobody can say how. */
export type Outcome =
  | { kind: 'ended'; exitCode: number | null }
  | { kind: 'not-started'; complaint: string }
  | { kind: 'let-go' }

export type Attempt = {
  /** Rejects with the reader's own error when the reader fails to take output. */
  outcome: Promise<Outcome>
  /** Rejects as soon as it does; never resolves. */
  readerFailed: Promise<never>
  /** It has been asked to end: should it begin only now, it is killed again. */
  cancel: () => void
  /** Ends the attempt without the command: the runtime's own process is killed, the pipes are closed. */
  letGo: () => void
}

const NOT_EXECUTABLE = 126
const MAX_COMPLAINT = 4096

type Following = Launch & {
  launched: Promise<number>
  stdout: Socket
  stderr: Socket
  isCancelled: () => boolean
  onReaderFailed: (error: unknown) => void
}

export function launchExec(launch: Launch): Attempt {
  const { runtime, paths, files, cgroupChild } = launch
  const [stdout, stderr] = [createPipe(), createPipe()]
  const stdin = launch.stdin === null ? null : createPipe()
  const launcher = spawn(runtime.binary, execArgs(runtime, paths.container, files, cgroupChild), {
    env: { PATH: SAFE_PATH },
    stdio: [stdin?.readEnd ?? 'ignore', stdout.writeEnd, stderr.writeEnd],
    detached: true,
  })
  for (const fd of [stdout.writeEnd, stderr.writeEnd, ...(stdin ? [stdin.readEnd] : [])]) closeFd(fd)
  if (stdin && launch.stdin) feed(stdin.writeEnd, launch.stdin)
  const launched = new Promise<number>((resolve, reject) => {
    launcher.once('error', reject)
    launcher.once('exit', (code) => resolve(code ?? NOT_EXECUTABLE))
  })

  let cancelled = false
  const letGo = Promise.withResolvers<Outcome>()
  const readerFailed = Promise.withResolvers<never>()
  readerFailed.promise.catch(() => {})
  const readers = { stdout: openReader(stdout.readEnd), stderr: openReader(stderr.readEnd) }
  const follow = runtime.execDetaches ? followDetached : followAttached
  const followed = follow({
    ...launch,
    ...readers,
    launched,
    isCancelled: () => cancelled,
    onReaderFailed: readerFailed.reject,
  })
  const close = () => Object.values(readers).forEach((reader) => reader.destroy())
  return {
    outcome: Promise.race([followed, letGo.promise]).finally(close),
    readerFailed: readerFailed.promise,
    cancel: () => void (cancelled = true),
    letGo: () => {
      if (launcher.pid !== undefined && launcher.exitCode === null) killProcessGroup(launcher.pid)
      // The reader's own error is worth more than that its command hung.
      void Promise.race([readerFailed.promise, Promise.resolve()]).then(
        () => letGo.resolve({ kind: 'let-go' }),
        letGo.reject,
      )
    },
  }
}

async function followDetached(exec: Following): Promise<Outcome> {
  // Readers start only then: until here, what is in the pipe may be the runtime's own complaint.
  const launchCode = await exec.launched
  const pid = readPid(exec.files.pidFile)
  if (launchCode !== 0 || pid === null) {
    return { kind: 'not-started', complaint: await readComplaint(exec.stderr) }
  }
  if (exec.isCancelled()) await exec.kill()
  const pumps = [pump('stdout', exec.stdout, exec.onOutput), pump('stderr', exec.stderr, exec.onOutput)]
  for (const one of pumps) one.ended.catch(exec.onReaderFailed)
  const exitCode = await waitForChild(pid)
  await drain(pumps)
  return { kind: 'ended', exitCode }
}

async function followAttached(exec: Following): Promise<Outcome> {
  let complaint = ''
  const started = () => existsSync(exec.files.pidFile)
  const onError: OnOutput = async (output) => {
    // Before the command runs, only the runtime itself can have said something.
    if (complaint.length < MAX_COMPLAINT && !started()) complaint += output.data.toString('utf8')
    else await exec.onOutput(output)
  }
  const pumps = [pump('stdout', exec.stdout, exec.onOutput), pump('stderr', exec.stderr, onError)]
  for (const one of pumps) one.ended.catch(exec.onReaderFailed)
  const exitCode = await exec.launched
  await drain(pumps)
  return started() ? { kind: 'ended', exitCode } : { kind: 'not-started', complaint }
}

async function readComplaint(stderr: Socket): Promise<string> {
  let complaint = ''
  const collect: OnOutput = ({ data }) => void (complaint += data.toString('utf8'))
  await drain([pump('stderr', stderr, collect)])
  return complaint.slice(0, MAX_COMPLAINT)
}

function readPid(path: string): number | null {
  try {
    return Number(readFileSync(path, 'utf8'))
  } catch {
    return null
  }
}
