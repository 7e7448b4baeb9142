// Processes of a Mastra sandbox: each is a command of the unit without a terminal, with its standard input.

import { ProcessHandle, SandboxProcessManager } from '@mastra/core/workspace'
import type { CommandResult, ProcessInfo, SpawnProcessOptions } from '@mastra/core/workspace'
import type { Terminal } from '../terminal.ts'
import type { Unit } from '../unit.ts'

/** What a process that was killed ends with, by the habit of shells. */
const KILLED = 137
/** What one that ran out of its time ends with. */
const TIMED_OUT = 124
/** A message of the WebSocket carries less than this. */
const PIECE_CHARACTERS = 16_384

class UnitProcess extends ProcessHandle {
  override readonly pid: string
  exitCode: number | undefined
  readonly #terminal: Terminal
  readonly #startedAt = performance.now()
  readonly #ended: Promise<void>
  #wasKilled = false
  #isLate = false

  constructor(pid: string, terminal: Terminal, options: SpawnProcessOptions) {
    super(options)
    this.pid = pid
    this.#terminal = terminal
    this.#ended = this.#read()
    const { timeout, abortSignal } = options
    const stop = () => void this.kill()
    const late = () => {
      this.#isLate = true
      stop()
    }
    const timer = timeout === undefined ? undefined : setTimeout(late, timeout)
    if (abortSignal?.aborted) stop()
    abortSignal?.addEventListener('abort', stop, { once: true })
    const clear = () => {
      clearTimeout(timer)
      abortSignal?.removeEventListener('abort', stop)
    }
    this.#ended.then(clear, clear)
  }

  async #read(): Promise<void> {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
    try {
      for await (const { stream, bytes } of this.#terminal.output) {
        const text = decoders[stream].decode(bytes, { stream: true })
        if (stream === 'stdout') this.emitStdout(text)
        else this.emitStderr(text)
      }
      this.exitCode = (await this.#terminal.wait()).exitCode
    } catch (error) {
      // It could not be run, or its connection or its unit ended before it did.
      this.emitStderr(error instanceof Error ? `${error.message}\n` : '')
      this.exitCode = KILLED
    }
    if (this.#isLate) this.exitCode = TIMED_OUT
  }

  async wait(): Promise<CommandResult> {
    await this.#ended
    const exitCode = this.exitCode ?? KILLED
    return {
      success: exitCode === 0,
      exitCode,
      stdout: this.stdout,
      stderr: this.stderr,
      executionTimeMs: Math.round(performance.now() - this.#startedAt),
      timedOut: this.#isLate,
      killed: this.#wasKilled,
      stdoutTruncated: this.stdoutTruncated,
      stderrTruncated: this.stderrTruncated,
      stdoutDroppedBytes: this.stdoutDroppedBytes,
      stderrDroppedBytes: this.stderrDroppedBytes,
    }
  }

  async kill(): Promise<boolean> {
    if (this.exitCode !== undefined) return false
    this.#wasKilled = true
    this.#terminal.signal('KILL')
    await this.#ended
    return true
  }

  async sendStdin(data: string): Promise<void> {
    if (this.exitCode !== undefined) throw new Error(`Process ${this.pid} has ended with ${this.exitCode}.`)
    for (let from = 0; from < data.length; from += PIECE_CHARACTERS)
      this.#terminal.write(data.slice(from, from + PIECE_CHARACTERS))
  }

  async closeStdin(): Promise<void> {
    this.#terminal.end()
  }
}

/** Needs WebSockets: Node 22 or newer. Processes end with the program that started them. */
export class UnitProcesses extends SandboxProcessManager {
  readonly #unit: () => Unit
  #last = 0

  /** @param unit The sandbox's, once it runs. */
  constructor(unit: () => Unit) {
    super({})
    this.#unit = unit
  }

  async spawn(command: string, options: SpawnProcessOptions = {}): Promise<ProcessHandle> {
    const env = Object.fromEntries(
      Object.entries({ ...this.sandbox.getEnv(), ...options.env }).filter(([, value]) => value !== undefined),
    ) as Record<string, string>
    const cwd = options.cwd ?? this.sandbox.workingDirectory
    const terminal = await this.#unit().terminal({ command, cwd, env, tty: false })
    if (options.stdinMode === 'ignore') terminal.end()
    const handle = new UnitProcess(String((this.#last += 1)), terminal, options)
    this._tracked.set(handle.pid, handle)
    return handle
  }

  async list(): Promise<ProcessInfo[]> {
    return [...(this._tracked as Map<string, UnitProcess>).values()].map(({ pid, command, exitCode }) => ({
      pid,
      running: exitCode === undefined,
      ...(command === undefined ? {} : { command }),
      ...(exitCode === undefined ? {} : { exitCode }),
    }))
  }
}
