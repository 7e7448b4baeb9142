// Background processes of a unit: commands that outlive the call that starts them.

import { argvOf } from './shell.ts'
import { base64Of, OutputPiece, textOf } from './command.ts'
import type {
  PidSignalled,
  Process as ProcessInfo,
  ProcessInputTaken,
  ProcessList,
  ProcessOutput,
  ProcessPiece,
  ProcessSignal,
  ProcessStart,
  ProcessTable,
} from './contract.ts'
import { isBerthError } from './errors.ts'
import { printsAs } from './printed.ts'
import { type CallOptions, type MakeOptions, newKey, sleep, type Transport } from './transport.ts'

export type StartOptions = Omit<ProcessStart, 'cmd'> & MakeOptions
export type OutputOptions = CallOptions & {
  /** An offset: the `next` of an earlier answer. Default: all that is kept. */
  after?: number | undefined
  maxBytes?: number | undefined
}
export type Signal = NonNullable<ProcessSignal['signal']>

export type Processes = {
  /** An array runs as it is, a string through `sh -c`. */
  start: (command: string | readonly string[], options?: StartOptions) => Promise<Process>
  /** Oldest first. */
  list: (options?: CallOptions & { tag?: string | undefined }) => Promise<Process[]>
  get: (id: string, options?: CallOptions) => Promise<Process>
  /** Everything that runs in the unit, with the pids that it sees itself: also what no call started. */
  table: (options?: CallOptions) => Promise<ProcessTable>
  /** For that process alone, also if no call started it. */
  signalPid: (pid: number, signal?: Signal, options?: CallOptions) => Promise<PidSignalled>
}

const RECONNECTIONS = 5
/** Of one call. */
const INPUT_BYTES = 256 * 1024

export class Process {
  /** What the service answered last. */
  info: ProcessInfo
  readonly #transport: Transport
  readonly #path: string

  constructor(transport: Transport, info: ProcessInfo) {
    this.#transport = transport
    this.#path = `${processesPath(info.unitId)}/${encodeURIComponent(info.id)}`
    this.info = info
  }

  get id(): string {
    return this.info.id
  }

  get state(): ProcessInfo['state'] {
    return this.info.state
  }

  /** Null while it runs, and for one that was lost. */
  get exitCode(): number | null {
    return this.info.exitCode
  }

  async refresh(options: CallOptions = {}): Promise<this> {
    return this.#renew(await this.#transport.json({ method: 'GET', path: this.#path, ...options }))
  }

  /** What is kept of its output from an offset on, without waiting for more. */
  async read({ after, maxBytes, ...options }: OutputOptions = {}): Promise<ProcessOutput> {
    const query = { after, maxBytes }
    return await this.#transport.json({ method: 'GET', path: `${this.#path}/output`, query, ...options })
  }

  /** All of its output as text, as far as it is kept. */
  async text(options: CallOptions = {}): Promise<{ stdout: string; stderr: string }> {
    const all = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
    for (let after = 0; ; ) {
      const { output, next } = await this.read({ ...options, after })
      if (output.length === 0) return { stdout: textOf(all.stdout), stderr: textOf(all.stderr) }
      for (const piece of output) all[piece.stream].push(pieceOf(piece).bytes)
      after = next
    }
  }

  /** Its output to its end. A lost connection is taken up again where it broke. */
  async *follow({ after = 0, maxBytes, ...options }: OutputOptions = {}): AsyncGenerator<OutputPiece> {
    for (let [from, lost] = [after, 0]; ; ) {
      const query = { after: from, maxBytes, follow: true }
      try {
        const events = this.#transport.events({
          method: 'GET',
          path: `${this.#path}/output`,
          query,
          ...options,
        })
        for await (const { event, data, id } of events) {
          if (event === 'end') {
            this.info = { ...this.info, ...(data as Pick<ProcessInfo, 'state' | 'exitCode'>) }
            return
          }
          yield pieceOf({ ...(data as Omit<ProcessPiece, 'stream'>), stream: event as 'stdout' | 'stderr' })
          from = Number(id ?? from)
          lost = 0
        }
        return
      } catch (error) {
        lost += 1
        if (!isBerthError(error, 'connection_failed') || lost > RECONNECTIONS) throw error
        await sleep(200 * 2 ** lost, options.signal)
      }
    }
  }

  /** Until it has ended. */
  async wait(options: CallOptions = {}): Promise<this> {
    for await (const piece of this.follow({ after: this.info.output.to, ...options })) void piece
    return await this.refresh(options)
  }

  /** For its process group; KILL is for all that came of it. */
  async signal(signal: Signal = 'TERM', options: CallOptions = {}): Promise<this> {
    const path = `${this.#path}/signal`
    return this.#renew(await this.#transport.json({ method: 'POST', path, body: { signal }, ...options }))
  }

  /**
   * Writes to its standard input, until it has taken all: it must have been started with `takesInput`. `end`: the input ends after
   * that. A call that fails may have written some of it.
   */
  async write(
    data: string | Uint8Array,
    { end = false, ...options }: CallOptions & { end?: boolean | undefined } = {},
  ): Promise<void> {
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
    const path = `${this.#path}/input`
    let at = 0
    do {
      const piece = bytes.subarray(at, at + INPUT_BYTES)
      const isLast = at + piece.length === bytes.length
      const body = { data: base64Of(piece), encoding: 'base64', end: end && isLast }
      const { taken } = await this.#transport.json<ProcessInputTaken>({
        method: 'POST',
        path,
        body,
        ...options,
      })
      // An end without data is taken at once.
      at += taken
      if (isLast && taken === piece.length) return
    } while (at <= bytes.length)
  }

  /** Its standard input ends: what reads it sees an end of file. */
  async endInput(options: CallOptions = {}): Promise<void> {
    await this.write('', { ...options, end: true })
  }

  /** It keeps its unit awake for so long from now on, at most an hour, and not beyond its end. 0: no longer. */
  async keepAwake(forMs?: number, options: CallOptions = {}): Promise<this> {
    const path = `${this.#path}/keep-awake`
    return this.#renew(await this.#transport.json({ method: 'POST', path, body: { forMs }, ...options }))
  }

  /** Killed if it runs, and forgotten. */
  async delete(options: CallOptions = {}): Promise<this> {
    return this.#renew(await this.#transport.json({ method: 'DELETE', path: this.#path, ...options }))
  }

  #renew(info: ProcessInfo): this {
    this.info = info
    return this
  }
}

printsAs(Process, ({ state, info: { cmd }, id }) => `Process(${cmd.join(' ').slice(0, 60)}, ${state}, ${id})`)

export function processesOf(transport: Transport, unitId: string): Processes {
  const path = processesPath(unitId)
  const table = `/v1/units/${encodeURIComponent(unitId)}/process-table`
  return {
    start: async (command, { signal, timeoutMs, idempotencyKey = newKey(), ...asked } = {}) => {
      const body = { ...asked, cmd: argvOf(command) }
      const info = await transport.json<ProcessInfo>({
        method: 'POST',
        path,
        body,
        signal,
        timeoutMs,
        idempotencyKey,
      })
      return new Process(transport, info)
    },
    list: async ({ tag, ...options } = {}) => {
      const call = { method: 'GET' as const, path, query: { tag }, ...options }
      const { processes } = await transport.json<ProcessList>(call)
      return processes.map((info) => new Process(transport, info))
    },
    table: async (options = {}) =>
      await transport.json<ProcessTable>({ method: 'GET', path: table, ...options }),
    signalPid: async (pid, signal = 'TERM', options = {}) =>
      await transport.json<PidSignalled>({
        method: 'POST',
        path: `${table}/${pid}/signal`,
        body: { signal },
        ...options,
      }),
    get: async (id, options = {}) => {
      const one = `${path}/${encodeURIComponent(id)}`
      return new Process(
        transport,
        await transport.json<ProcessInfo>({ method: 'GET', path: one, ...options }),
      )
    },
  }
}

const pieceOf = ({ stream, ...data }: ProcessPiece) => new OutputPiece(stream, data)
const processesPath = (unitId: string) => `/v1/units/${encodeURIComponent(unitId)}/processes`
