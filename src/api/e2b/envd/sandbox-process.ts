// A process that a client started in a sandbox: an interactive command of the API, whose other end is this and not a
// WebSocket. It goes on when its client goes away; others may attach to it. What it prints passes to those that are
// attached, no faster than the slowest of them reads; what it prints while none is goes nowhere.

import { type AppError, unavailable } from '../../../contract/errors.ts'
import { terminalStreams } from '../../../contract/terminal.ts'
import { SECOND } from '../../../lib/clock.ts'
import { createByteQueue, type ByteQueue } from '../../../lib/concurrency/byte-queue.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import { toAppError } from '../../http/errors.ts'
import { isWebSocketAnswer, type WebSocketMessage } from '../../http/web-socket-answer.ts'
import type { Streamed } from '../../route.ts'
import { runStreamed } from '../run.ts'
import { operate, type SandboxCall } from '../sandbox-call.ts'
import { entering, readEntered } from './enter.ts'

export type ProcessConfig = { cmd: string; args: string[]; envs: Record<string, string>; cwd: string }
export type PtySize = { cols: number; rows: number }

export type StartOptions = {
  config: ProcessConfig
  user: string
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
  readonly #input = createByteQueue<WebSocketMessage>(WAITING_BYTES, ({ data }) => data.length)
  readonly #readers = new Set<ByteQueue<Printed>>()
  readonly #begins = Promise.withResolvers<number>()
  /** What it printed before its id was known. */
  #head: Buffer | null = Buffer.alloc(0)
  #exitCode: number | null = null
  readonly #signals: Signal[] = []
  #hasEnded = false

  constructor(call: SandboxCall, options: StartOptions) {
    this.#call = call
    this.options = options
    this.began = this.#begins.promise
    this.began.catch(() => {})
    this.ended = this.#run()
    if (!options.takesInput && options.pty === null) void this.#input.push(textFrame({ eof: true }))
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
    const { operations, sender, unitId, stopping } = this.#call
    const asked = {
      route: 'GET /v1/units/{id}/exec',
      input: { params: { id: unitId }, query: this.#query() },
      signal: stopping,
      isUpgrade: true,
    }
    await runStreamed(operations, sender, asked, async (stream) => await this.#serve(stream))
    const exitCode = this.#exitCode ?? 0
    const signal = this.#signals.find((name) => exitCodes[name] === exitCode)
    return signal === undefined ? { kind: 'exit', exitCode } : { kind: 'signal', signal }
  }

  #query(): Record<string, string | string[]> {
    const { config, pty, user, template } = this.options
    const command = entering(config.cwd, [config.cmd, ...config.args])
    const { sandboxId } = this.#call
    const known = { E2B_SANDBOX: 'true', E2B_SANDBOX_ID: sandboxId, E2B_TEMPLATE_ID: template }
    const envs = { ...known, USER: user, LOGNAME: user, ...config.envs }
    const env = Object.entries(envs).map(([name, value]) => `${name}=${value}`)
    const size = pty === null ? { tty: '0' } : { tty: '1', cols: String(pty.cols), rows: String(pty.rows) }
    return { ...size, cmd: command, env, user }
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
        this.#exitCode = (told as { exit: { exitCode: number } }).exit.exitCode
      },
    })
  }

  async #print(printed: Printed): Promise<void> {
    if (this.#head === null || printed.stream === 'stderr') return await this.#tell(printed)
    const head = Buffer.concat([this.#head, printed.data])
    const entered = readEntered(head, this.options.config.cwd)
    this.#head = entered.kind === 'more' ? head : null
    if (entered.kind === 'refused') this.#begins.reject(entered.error)
    if (entered.kind !== 'began') return
    this.pid = entered.pid
    this.#begins.resolve(entered.pid)
    await this.#tell({ stream: 'stdout', data: entered.rest })
  }

  /** Waits for the slowest reader. */
  async #tell(printed: Printed): Promise<void> {
    if (printed.data.length === 0) return
    await Promise.all([...this.#readers].map(async (reader) => await reader.push(printed)))
  }
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
