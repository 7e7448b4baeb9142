// Runs child processes with a timeout and bounded output. Arguments are always an array: nothing in Berth goes
// through a shell.

import { spawn } from 'node:child_process'

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
  uid?: number
  gid?: number
  signal?: AbortSignal
}

export type RunResult = {
  exitCode: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
  timedOut: boolean
}

/** How long to wait after the kill. */
const GIVE_UP_AFTER_MS = 2000

export const SAFE_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/**
 * Runs a program to its end. A failure returns the same type as a success; it only rejects if the program cannot be
 * started.
 */
export async function run(command: string, args: string[], options: RunOptions): Promise<RunResult> {
  const child = spawn(command, args, {
    // In its own process group, so that a timeout kills every descendant.
    detached: true,
    stdio: [options.stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    env: options.env ?? { PATH: SAFE_PATH },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.uid === undefined ? {} : { uid: options.uid }),
    ...(options.gid === undefined ? {} : { gid: options.gid }),
  })
  const gaveUp = Promise.withResolvers<[null, NodeJS.Signals]>()
  let giveUp: NodeJS.Timeout | undefined
  const killGroup = () => {
    if (child.pid !== undefined) killProcessGroup(child.pid)
    // The process cannot be killed, or a descendant outside of its group holds the output: do not wait any longer.
    giveUp = setTimeout(() => {
      child.stdout?.destroy()
      child.stderr?.destroy()
      gaveUp.resolve([null, 'SIGKILL'])
    }, GIVE_UP_AFTER_MS)
  }
  let timedOut = false
  const timer = setTimeout(() => {
    timedOut = true
    killGroup()
  }, options.timeoutMs)
  options.signal?.addEventListener('abort', killGroup, { once: true })
  if (options.signal?.aborted) killGroup()

  const stdout = collect(child.stdout, options.maxOutputBytes)
  const stderr = collect(child.stderr, options.maxOutputBytes)
  try {
    const ended = new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) => resolve([code, signal]))
    })
    if (child.stdin) {
      // The child may end without reading its input: EPIPE is not an error here.
      child.stdin.on('error', () => {})
      child.stdin.end(options.stdin)
    }
    const [exitCode, signal] = await Promise.race([ended, gaveUp.promise])
    return { exitCode, signal, stdout: stdout(), stderr: stderr(), timedOut }
  } finally {
    clearTimeout(timer)
    clearTimeout(giveUp)
    options.signal?.removeEventListener('abort', killGroup)
  }
}

export class ProcessFailed extends Error {
  readonly result: RunResult
  constructor(command: string, args: string[], result: RunResult) {
    const how = result.timedOut ? 'timed out' : `ended with ${result.exitCode ?? result.signal}`
    super(`${command} ${args[0] ?? ''} ${how}: ${result.stderr.trim().slice(-2000)}`)
    this.result = result
  }
}

/** Runs a program and returns its standard output; throws ProcessFailed unless it exits with 0. */
export async function runOrThrow(command: string, args: string[], options: RunOptions): Promise<string> {
  const result = await run(command, args, options)
  if (result.exitCode !== 0 || result.timedOut) throw new ProcessFailed(command, args, result)
  return result.stdout
}

export function killProcessGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The process has already ended.
  }
}

function collect(stream: NodeJS.ReadableStream | null, maxBytes = 1024 * 1024): () => string {
  const chunks: Buffer[] = []
  let bytes = 0
  stream?.on('data', (chunk: Buffer) => {
    const room = maxBytes - bytes
    if (room <= 0) return
    chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk)
    bytes += Math.min(chunk.length, room)
  })
  return () => Buffer.concat(chunks).toString('utf8')
}
