// An interactive command in a unit, over a WebSocket: input is sent as it is typed, and output arrives as it is
// printed.

import type { Exit } from './command.ts'
import { endedTooSoon, errorOfEnvelope } from './errors.ts'
import { argvOf } from './shell.ts'
import { type Transport, withResolvers } from './transport.ts'
import type { AbortSignal, WebSocket } from './platform.ts'

export type TerminalOptions = {
  /** An array runs as it is, a string through `sh -c`. Default: bash where the unit has it, else sh. */
  command?: string | readonly string[] | undefined
  /** False: pipes in place of a terminal, with standard error apart. */
  tty?: boolean | undefined
  columns?: number | undefined
  rows?: number | undefined
  cwd?: string | undefined
  env?: Readonly<Record<string, string>> | undefined
  /** A name or a number of the unit's `/etc/passwd`. Default: the user of the unit's own process. */
  user?: string | undefined
  /**
   * A name of your choice: the command outlives this client by ten minutes, and a terminal that is opened with the same name
   * attaches to it, is shown what it printed last, and takes it over.
   */
  session?: string | undefined
  /** Aborting it ends the command, or leaves its session. */
  signal?: AbortSignal | undefined
}

export type TerminalSignal = 'HUP' | 'INT' | 'QUIT' | 'TERM' | 'USR1' | 'USR2' | 'KILL'

export type TerminalOutput = { stream: 'stdout' | 'stderr'; bytes: Uint8Array }

/** The first byte of a message of bytes. */
const streams = { stdin: 0, stdout: 1, stderr: 2 } as const

export class Terminal {
  /** Read it once. It ends with the command. */
  readonly output: AsyncIterable<TerminalOutput>
  readonly #socket: WebSocket
  readonly #exit = withResolvers<Exit>()
  readonly #waiting: TerminalOutput[] = []
  #changed = withResolvers<void>()
  #isOver = false

  constructor(socket: WebSocket, signal?: AbortSignal) {
    this.#socket = socket
    // A failure is passed only to callers that wait for the end.
    this.#exit.promise.catch(() => {})
    socket.addEventListener('message', ({ data }) => this.#hear(data as ArrayBuffer | string))
    socket.addEventListener('close', () => {
      signal?.removeEventListener('abort', abort)
      this.#end(endedTooSoon())
    })
    const abort = () => {
      this.#end(signal?.reason)
      this.close()
    }
    signal?.addEventListener('abort', abort, { once: true })
    this.output = this.#read()
  }

  /** Text, or bytes, for its standard input. */
  write(data: string | Uint8Array): void {
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
    const message = new Uint8Array(1 + bytes.length)
    message[0] = streams.stdin
    message.set(bytes, 1)
    this.#send(message)
  }

  resize(columns: number, rows: number): void {
    if (columns > 0 && rows > 0) this.#send(JSON.stringify({ resize: [columns, rows] }))
  }

  /** For what runs in its foreground; KILL is for all that came of the command. */
  signal(signal: TerminalSignal): void {
    this.#send(JSON.stringify({ signal }))
  }

  /** Ends its standard input. */
  end(): void {
    this.#send(JSON.stringify({ eof: true }))
  }

  /** Its end. Throws where the command could not be run, or was killed with its unit. */
  async wait(): Promise<Exit> {
    return await this.#exit.promise
  }

  /** Ends the command in the unit; of a session, leaves it. */
  close(): void {
    this.#socket.close()
  }

  #send(message: string | Uint8Array<ArrayBuffer>): void {
    // What is typed as the command ends goes nowhere, as in any terminal.
    if (this.#socket.readyState === 1) this.#socket.send(message)
  }

  #hear(data: ArrayBuffer | string): void {
    if (typeof data !== 'string') {
      const bytes = new Uint8Array(data)
      const stream = bytes[0] === streams.stderr ? 'stderr' : 'stdout'
      this.#waiting.push({ stream, bytes: bytes.subarray(1) })
      this.#tell()
      return
    }
    const told = JSON.parse(data) as { exit?: Exit }
    if (told.exit) this.#exit.resolve(told.exit)
    else this.#exit.reject(errorOfEnvelope(told, {}))
  }

  #end(reason: unknown): void {
    this.#isOver = true
    this.#exit.reject(reason)
    this.#tell()
  }

  #tell(): void {
    this.#changed.resolve()
    this.#changed = withResolvers<void>()
  }

  async *#read(): AsyncGenerator<TerminalOutput> {
    for (;;) {
      const next = this.#waiting.shift()
      if (next) yield next
      else if (this.#isOver) return
      else await this.#changed.promise
    }
  }
}

/** Resolves when it is open. */
export async function openTerminal(
  transport: Transport,
  unitId: string,
  { command, tty, columns, rows, cwd, env = {}, user, session, signal }: TerminalOptions,
): Promise<Terminal> {
  const path = `/v1/units/${encodeURIComponent(unitId)}/exec`
  const query = {
    tty: tty === false ? '0' : undefined,
    // A terminal that does not know its size says 0.
    cols: columns || undefined,
    rows: rows || undefined,
    cwd,
    user,
    session,
    cmd: command === undefined ? undefined : argvOf(command),
    env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
  }
  return new Terminal(await transport.webSocket({ method: 'GET', path, query, signal }), signal)
}
