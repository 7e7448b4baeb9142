// A process that a client started in a sandbox: an interactive command of the API, whose other end is this and not a
// WebSocket. It goes on when its client goes away; others may attach to it. What it prints passes to those that are
// attached, no faster than the slowest of them reads; what it prints while none is goes nowhere.

import { type AppError, unavailable, validation } from '../../../contract/errors.ts'
import { terminalStreams } from '../../../contract/terminal.ts'
import { SECOND } from '../../../lib/clock.ts'
import { createByteQueue, type ByteQueue } from '../../../lib/concurrency/byte-queue.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import { toAppError } from '../../http/errors.ts'
import { isWebSocketAnswer, type WebSocketMessage } from '../../http/web-socket-answer.ts'
import type { Streamed } from '../../route.ts'
import { runStreamed } from '../run.ts'
import { operate, type SandboxCall } from '../sandbox-call.ts'
import { directoriesOf } from './directories.ts'

export type ProcessConfig = { cmd: string; args: string[]; envs: Record<string, string>; cwd: string }
export type PtySize = { cols: number; rows: number }

export type StartOptions = {
  config: ProcessConfig
  user: string
  /** The user's, as the sandbox says it. */
  homeOf: () => Promise<string>
  tag: string
  /** The template that the sandbox says it is of. */
  template: string
  pty: PtySize | null
  takesInput: boolean
}

export type Signal = 'TERM' | 'KILL'
/** As a shell numbers the end by one. */
const exitCodes: Record<Signal, number> = { TERM: 143, KILL: 137 }

/** How a process ended: its exit, the signal of a client that ended it, or why it could not go on. */
export type Ending =
  | { kind: 'exit'; exitCode: number }
  | { kind: 'signal'; signal: Signal }
  | { kind: 'failed'; error: AppError }

export type Printed = { stream: 'stdout' | 'stderr'; data: Buffer }

/** What waits for a reader, and for the process to read. */
const WAITING_BYTES = 256 * 1024
const SIGNAL = 'kill -s "$1" -- "-$2" 2>/dev/null || kill -s "$1" "$2" 2>/dev/null'
const SIGNAL_MS = 10 * SECOND
/** How long a killed process may take to be gone. */
const KILLED_WITHIN_MS = 2 * SECOND
/** What its errors may be before its id comes. */
const EARLY_PIECES = 64
/** The exit code where a directory cannot be entered: nothing has begun. */
const NO_DIRECTORY = 126
const STDIN = Buffer.from([terminalStreams.stdin])

export class SandboxProcess {
  readonly options: StartOptions
  /** Resolves once the process has its id. Rejects if it could not begin. */
  readonly began: Promise<number>
  /** Resolves when it has ended. */
  readonly ended: Promise<Ending>
  /** 0 until it has begun. */
  pid = 0
  readonly #call: SandboxCall
  #input = createInput()
  readonly #readers = new Set<ByteQueue<Printed>>()
  readonly #begins = Promise.withResolvers<number>()
  /** What came before its id, since the two outputs come apart. Null: it has begun. */
  #early: Printed[] | null = []
  #exitCode: number | null = null
  readonly #signals: Signal[] = []
  #hasEnded = false

  constructor(call: SandboxCall, options: StartOptions) {
    this.#call = call
    this.options = options
    this.began = this.#begins.promise
    this.began.catch(() => {})
    this.ended = this.#run()
  }

  /** What the process prints from now on, until it has ended. Throws the signal's reason. */
  attach(signal: AbortSignal): AsyncIterable<Printed> {
    const reader = createByteQueue<Printed>(WAITING_BYTES, ({ data }) => data.length)
    const leave = () => {
      this.#readers.delete(reader)
      reader.end()
    }
    this.#readers.add(reader)
    signal.addEventListener('abort', leave, { once: true })
    if (this.#hasEnded || signal.aborted) leave()
    return readUntilEnd(reader, signal, leave)
  }

  async write(data: Buffer): Promise<void> {
    await this.#send({ isText: false, data: Buffer.concat([STDIN, data]) })
  }

  async endInput(): Promise<void> {
    await this.#send(textFrame({ eof: true }))
  }

  async resize({ cols, rows }: PtySize): Promise<void> {
    await this.#send(textFrame({ resize: [cols, rows] }))
  }

  /** Its group, as root: the process may belong to another user than the one that commands of the API run as. */
  async signal(call: SandboxCall, name: Signal): Promise<void> {
    this.#signals.push(name)
    const cmd = ['/bin/sh', '-c', SIGNAL, 'signal', name, String(this.pid)]
    await operate(call, 'POST /v1/units/{id}/exec', { body: { cmd, timeoutMs: SIGNAL_MS } })
    if (name === 'KILL') await completesWithin(call.app.clock, KILLED_WITHIN_MS, this.ended)
  }

  async #send(message: WebSocketMessage): Promise<void> {
    await this.#input.push(message)
  }

  async #run(): Promise<Ending> {
    const ending = await this.#operate().catch((error: unknown): Ending => {
      this.#begins.reject(error)
      return { kind: 'failed', error: toAppError(error) }
    })
    this.#hasEnded = true
    this.#begins.reject(unavailable('The sandbox stopped before the command had begun.', 1))
    this.#input.end()
    for (const reader of this.#readers) reader.end()
    return ending
  }

  async #operate(): Promise<Ending> {
    const { config, user, homeOf } = this.options
    for await (const directory of directoriesOf(config.cwd, user, homeOf)) {
      await this.#operateIn(directory)
      const exitCode = this.#exitCode ?? 0
      if (this.#early !== null && exitCode === NO_DIRECTORY) continue
      const signal = this.#signals.find((name) => exitCodes[name] === exitCode)
      return signal === undefined ? { kind: 'exit', exitCode } : { kind: 'signal', signal }
    }
    throw validation([{ path: 'cwd', message: `"${config.cwd}" does not exist` }])
  }

  async #operateIn(directory: string): Promise<void> {
    const { operations, sender, unitId, stopping } = this.#call
    this.#early = []
    this.#input = createInput()
    if (!this.options.takesInput && this.options.pty === null) void this.#input.push(textFrame({ eof: true }))
    const asked = {
      route: 'GET /v1/units/{id}/exec',
      input: { params: { id: unitId }, query: this.#query(directory) },
      signal: stopping,
      isUpgrade: true,
    }
    await runStreamed(operations, sender, asked, async (stream) => await this.#serve(stream))
  }

  #query(cwd: string): Record<string, string | string[]> {
    const { config, pty, user, template } = this.options
    const { sandboxId } = this.#call
    const known = { E2B_SANDBOX: 'true', E2B_SANDBOX_ID: sandboxId, E2B_TEMPLATE_ID: template }
    const envs = { ...known, USER: user, LOGNAME: user, ...config.envs }
    const env = Object.entries(envs).map(([name, value]) => `${name}=${value}`)
    const size = pty === null ? { tty: '0' } : { tty: '1', cols: String(pty.cols), rows: String(pty.rows) }
    return { ...size, cmd: [config.cmd, ...config.args], cwd, env, user, pid: '1' }
  }

  async #serve(stream: Streamed): Promise<void> {
    if (!isWebSocketAnswer(stream)) throw new TypeError('a terminal answers with a WebSocket')
    await stream.serveWebSocket({
      messages: this.#input,
      sendBinary: async (frame) => {
        const isStderr = frame[0] === terminalStreams.stderr
        await this.#print({ stream: isStderr ? 'stderr' : 'stdout', data: frame.subarray(1) })
      },
      sendJson: async (told) => {
        const said = told as { pid: number } | { exit: { exitCode: number } }
        if ('pid' in said) await this.#begin(said.pid)
        else this.#exitCode = said.exit.exitCode
      },
    })
  }

  async #begin(pid: number): Promise<void> {
    const early = this.#early ?? []
    this.#early = null
    this.pid = pid
    this.#begins.resolve(pid)
    for (const printed of early) await this.#tell(printed)
  }

  async #print(printed: Printed): Promise<void> {
    if (this.#early === null) return await this.#tell(printed)
    if (this.#early.length >= EARLY_PIECES)
      throw unavailable('The command could not be started; send it again.', 1)
    // A copy: it is passed on later.
    this.#early.push({ ...printed, data: Buffer.from(printed.data) })
  }

  /** Waits for the slowest reader. */
  async #tell(printed: Printed): Promise<void> {
    if (printed.data.length === 0) return
    await Promise.all([...this.#readers].map(async (reader) => await reader.push(printed)))
  }
}

function createInput(): ByteQueue<WebSocketMessage> {
  return createByteQueue<WebSocketMessage>(WAITING_BYTES, ({ data }) => data.length)
}

async function* readUntilEnd(
  reader: ByteQueue<Printed>,
  signal: AbortSignal,
  leave: () => void,
): AsyncGenerator<Printed> {
  try {
    for await (const printed of reader) {
      signal.throwIfAborted()
      yield printed
    }
    signal.throwIfAborted()
  } finally {
    signal.removeEventListener('abort', leave)
    leave()
  }
}

function textFrame(value: unknown): WebSocketMessage {
  return { isText: true, data: Buffer.from(JSON.stringify(value)) }
}
