// Runs child processes with a timeout and bounded output. Arguments are always an array: nothing in Berth goes
// through a shell.

import { spawn } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

export type RunOptions = {
  /** Written to standard input, which is then closed. Without it, standard input is /dev/null. */
  stdin?: string | Buffer
  /** After this time the whole process group gets SIGKILL. */
  timeoutMs: number
  /** Output beyond this many bytes per stream is dropped; the child goes on. Default: 1 MiB. */
  maxOutputBytes?: number
  /** The whole environment of the child. Default: only PATH, so that no secret leaks. */
  env?: Record<string, string>
  cwd?: string
  signal?: AbortSignal
}

export type RunResult = Ended & {
  stdout: string
  stderr: string
  timedOut: boolean
}

/** Both are null if it is not known. */
export type Ended = { exitCode: number | null; signal: NodeJS.Signals | null }

/** A program that has been started for `run`, in a process group of its own. */
export type Child = {
  /** Null: /dev/null. */
  stdin: Writable | null
  stdout: Readable
  stderr: Readable
  /** Resolves when it has ended and its outputs are closed. Rejects if it could not be started. */
  ended: Promise<Ended>
  /** Sends SIGKILL to its process group. */
  kill: () => void
}

export type StartChild = (
  command: string,
  args: string[],
  options: { hasStdin: boolean; env: Record<string, string>; cwd?: string },
) => Child

export type Runner = {
  /**
   * Runs a program to its end. A failure returns the same type as a success; it only rejects if the program cannot be
   * started.
   */
  run: (command: string, args: string[], options: RunOptions) => Promise<RunResult>
  /** Runs a program and returns its standard output; throws ProcessFailed unless it exits with 0. */
  runOrThrow: (command: string, args: string[], options: RunOptions) => Promise<string>
}

/** How long to wait after the kill. */
const GIVE_UP_AFTER_MS = 2000

export const SAFE_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** The paths of all programs of a name in `SAFE_PATH`, in its order. */
export async function programsNamed(name: string): Promise<string[]> {
  const paths = SAFE_PATH.split(':').map((directory) => join(directory, name))
  const areThere = await Promise.all(paths.map(isExecutable))
  return paths.filter((_, at) => areThere[at])
}

export async function isExecutable(path: string): Promise<boolean> {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}

/** `run` and `runOrThrow` with another way to start a program. */
export function createRunner(start: StartChild): Runner {
  const run: Runner['run'] = async (command, args, options) => {
    const { stdin, env = { PATH: SAFE_PATH }, cwd, signal, maxOutputBytes, timeoutMs } = options
    const hasStdin = stdin !== undefined
    const child = start(command, args, { hasStdin, env, ...(cwd === undefined ? {} : { cwd }) })
    const gaveUp = Promise.withResolvers<Ended>()
    let giveUp: NodeJS.Timeout | undefined
    const kill = () => {
      child.kill()
      // The process cannot be killed, or a descendant outside of its group holds the output: do not wait any longer.
      giveUp ??= setTimeout(() => {
        child.stdout.destroy()
        child.stderr.destroy()
        gaveUp.resolve({ exitCode: null, signal: 'SIGKILL' })
      }, GIVE_UP_AFTER_MS)
    }
    let timedOut = false
    const timer = setTimeout(() => {
      timedOut = true
      kill()
    }, timeoutMs)
    signal?.addEventListener('abort', kill, { once: true })
    if (signal?.aborted) kill()

    const stdout = collect(child.stdout, maxOutputBytes)
    const stderr = collect(child.stderr, maxOutputBytes)
    // The child may end without reading its input: EPIPE is not an error here.
    child.stdin?.on('error', () => {})
    child.stdin?.end(stdin)
    try {
      const ended = await Promise.race([child.ended, gaveUp.promise])
      return { ...ended, stdout: stdout(), stderr: stderr(), timedOut }
    } finally {
      clearTimeout(timer)
      clearTimeout(giveUp)
      signal?.removeEventListener('abort', kill)
    }
  }
  const runOrThrow: Runner['runOrThrow'] = async (command, args, options) => {
    const result = await run(command, args, options)
    if (result.exitCode !== 0 || result.timedOut) throw new ProcessFailed(command, args, result)
    return result.stdout
  }
  return { run, runOrThrow }
}

export const { run, runOrThrow } = createRunner((command, args, { hasStdin, env, cwd }) => {
  const child = spawn(command, args, {
    // In its own process group, so that a timeout kills every descendant.
    detached: true,
    stdio: [hasStdin ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    env,
    ...(cwd === undefined ? {} : { cwd }),
  })
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (exitCode, signal) => resolve({ exitCode, signal }))
  })
  const kill = () => {
    if (child.pid !== undefined) killProcessGroup(child.pid)
  }
  const { stdin, stdout, stderr } = child
  if (stdout === null || stderr === null) throw new Error('a program was started without its outputs')
  return { stdin, stdout, stderr, ended, kill }
})

export class ProcessFailed extends Error {
  readonly result: RunResult
  constructor(command: string, args: string[], result: RunResult) {
    const how = result.timedOut ? 'timed out' : `ended with ${result.exitCode ?? result.signal}`
    super(`${command} ${args[0] ?? ''} ${how}: ${result.stderr.trim().slice(-2000)}`)
    this.result = result
  }
}

export function killProcessGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The process has already ended.
  }
}

function collect(stream: Readable, maxBytes = 1024 * 1024): () => string {
  const chunks: Buffer[] = []
  let bytes = 0
  stream.on('data', (chunk: Buffer) => {
    const room = maxBytes - bytes
    if (room <= 0) return
    chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk)
    bytes += Math.min(chunk.length, room)
  })
  return () => Buffer.concat(chunks).toString('utf8')
}
