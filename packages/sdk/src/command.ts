// Commands in a unit: `execute` waits for the end and returns the output, `startCommand` streams the output.

import type { Exec, ExecResult } from './contract.ts'
import { BerthError, CommandError, endedTooSoon } from './errors.ts'
import { argvOf } from './shell.ts'
import { type Transport, withResolvers } from './transport.ts'
import type { AbortSignal } from './platform.ts'

type Asked = Omit<Exec, 'cmd' | 'timeoutMs'>

export type SpawnOptions = Asked & {
  signal?: AbortSignal | undefined
  /** How long the command may run, in ms; it is killed then. */
  timeoutMs?: number | undefined
}

export type ExecOptions = SpawnOptions & {
  /** Throws a CommandError for a code other than 0. */
  check?: boolean | undefined
}

export type Exit = Pick<ExecResult, 'exitCode' | 'timedOut'>

const DEFAULT_MS = 120_000
/** Longer than this some clients do not wait for an answer to begin: it is streamed then. */
const MAX_QUIET_MS = 240_000
/** What a result keeps of each stream, as the service does. */
const MAX_BYTES = 1_048_576

export async function execute(
  transport: Transport,
  unitId: string,
  command: string | readonly string[],
  { check, ...options }: ExecOptions,
): Promise<ExecResult> {
  const timeoutMs = options.timeoutMs ?? DEFAULT_MS
  const ended =
    timeoutMs <= MAX_QUIET_MS
      ? await transport.json<ExecResult>(execCall(unitId, command, options))
      : await collect(startCommand(transport, unitId, command, options))
  const result = ended.timedOut
    ? { ...ended, stderr: ended.stderr + outOfTime(timeoutMs, ended.stderr) }
    : ended
  if (check && (result.exitCode !== 0 || result.timedOut))
    throw new CommandError(typeof command === 'string' ? command : command.join(' '), result)
  return result
}

/** Who reads nothing but the output learns why it ends there. */
function outOfTime(timeoutMs: number, said: string): string {
  const apart = said === '' || said.endsWith('\n') ? '' : '\n'
  return `${apart}berth: the command ran out of its ${timeoutMs / 1000} s and was killed; give it more with timeoutMs\n`
}

/** Output of a command, in the order in which it came. */
export class OutputPiece {
  readonly stream: 'stdout' | 'stderr'
  readonly #data: string
  readonly #isBase64: boolean

  constructor(
    stream: 'stdout' | 'stderr',
    { data, encoding }: { data: string; encoding?: 'base64' | undefined },
  ) {
    this.stream = stream
    this.#data = data
    this.#isBase64 = encoding === 'base64'
  }

  /** As UTF-8; bytes that are not become U+FFFD. */
  get text(): string {
    return this.#isBase64 ? textOf([this.bytes]) : this.#data
  }

  get bytes(): Uint8Array {
    return this.#isBase64 ? bytesOfBase64(this.#data) : new TextEncoder().encode(this.#data)
  }
}

export class Command {
  /** Read it once. A command whose output is not read waits. */
  readonly output: AsyncIterable<OutputPiece>
  readonly #exit = withResolvers<Exit>()
  readonly #gone = new AbortController()
  #isRead = false

  constructor(events: (signal: AbortSignal) => ReturnType<Transport['events']>) {
    // A failure is passed only to callers that wait for the end.
    this.#exit.promise.catch(() => {})
    // The call begins now, not with the first read.
    const stream = events(this.#gone.signal)
    const first = stream.next()
    first.catch((error: unknown) => this.#exit.reject(error))
    this.output = { [Symbol.asyncIterator]: () => this.#read(stream, first) }
  }

  /** Resolves with its end. Unread output is dropped. Throws if the command could not be run, or was killed with its unit. */
  async wait(): Promise<Exit> {
    if (!this.#isRead) for await (const piece of this.output) void piece
    return await this.#exit.promise
  }

  /** Ends the command in the unit. Its reader and its waiter get an AbortError. */
  kill(): void {
    this.#gone.abort()
  }

  async *#read(
    stream: ReturnType<Transport['events']>,
    first: ReturnType<typeof stream.next>,
  ): AsyncGenerator<OutputPiece> {
    if (this.#isRead) throw new BerthError('command_failed', 'The output of a command can be read once.')
    this.#isRead = true
    try {
      for (let next = await first; !next.done; next = await stream.next()) {
        const { event, data } = next.value
        if (event === 'exit') this.#exit.resolve(data as Exit)
        else yield new OutputPiece(event as OutputPiece['stream'], data as { data: string })
      }
      this.#exit.reject(endedTooSoon())
    } catch (error) {
      this.#exit.reject(error)
      throw error
    } finally {
      // A reader that breaks off has no more use for the command.
      this.#gone.abort()
      await stream.return(undefined).catch(() => {})
      this.#exit.reject(this.#gone.signal.reason)
    }
  }
}

export function startCommand(
  transport: Transport,
  unitId: string,
  command: string | readonly string[],
  { signal, ...options }: SpawnOptions,
): Command {
  return new Command((gone) =>
    transport.events({
      ...execCall(unitId, command, options),
      signal: signal ? AbortSignal.any([signal, gone]) : gone,
    }),
  )
}

function execCall(
  unitId: string,
  command: string | readonly string[],
  { signal, timeoutMs, ...asked }: SpawnOptions,
) {
  return {
    method: 'POST' as const,
    path: `/v1/units/${encodeURIComponent(unitId)}/exec`,
    body: { ...asked, cmd: argvOf(command), ...(timeoutMs === undefined ? {} : { timeoutMs }) },
    // The unit may have to wake before.
    extraMs: timeoutMs ?? DEFAULT_MS,
    ...(signal ? { signal } : {}),
  }
}

async function collect(command: Command): Promise<ExecResult> {
  const kept = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
  const room = { stdout: MAX_BYTES, stderr: MAX_BYTES }
  let truncated = false
  for await (const { stream, bytes } of command.output) {
    if (bytes.length > room[stream]) truncated = true
    if (room[stream] > 0) kept[stream].push(bytes.subarray(0, room[stream]))
    room[stream] -= bytes.length
  }
  const { exitCode, timedOut } = await command.wait()
  const text = (stream: 'stdout' | 'stderr') => textOf(kept[stream], room[stream] < 0)
  return { exitCode, timedOut, truncated, stdout: text('stdout'), stderr: text('stderr') }
}

/**
 * Pieces of a text in UTF-8, where a character may begin in one and end in the next; bytes that are not UTF-8 become
 * U+FFFD. `isCut`: a character that the end cuts is left out.
 */
export function textOf(pieces: readonly Uint8Array[], isCut = false): string {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const text = pieces.map((piece) => decoder.decode(piece, { stream: true })).join('')
  return isCut ? text : text + decoder.decode()
}

export function base64Of(bytes: Uint8Array): string {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary)
}

export function bytesOfBase64(base64: string): Uint8Array {
  const binary = atob(base64)
  const bytes = new Uint8Array(binary.length)
  for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index)
  return bytes
}
