// Terminals that outlive their client. A caller that names a session may go away and attach to it again: the command goes on
// meanwhile, and what it printed last is shown to the next client. One client at a time: the later one takes it over.
//
// They are kept in memory, and end with this process as every terminal does.

import type { App } from '../../app.ts'
import { AppError, conflict } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import { NOT_NEEDED } from '../../lib/clock.ts'
import type { ExecExit, ExecOutput } from '../../engine/exec.ts'
import { createByteQueue } from '../../lib/concurrency/byte-queue.ts'
import type { Caller } from '../credentials/caller.ts'
import { runTerminal, type TerminalInput, type TerminalLine, type TerminalOptions } from './terminal.ts'

/** What waits for the command to read it. */
const INPUT_BYTES = 64 * 1024

const sessionsOf = new WeakMap<App, Map<string, TerminalSession>>()

/**
 * Runs the command, or attaches to the one that the same credential runs by this name in this unit. Resolves when the command
 * has ended. Throws as `runTerminal` does, the reason of `line.signal`, or `conflict` once another client has attached.
 */
export async function attachTerminal(
  app: App,
  caller: Caller,
  id: string,
  { name, ...options }: TerminalOptions & { name: string },
  line: TerminalLine,
): Promise<ExecExit> {
  const sessions = sessionsOf.get(app) ?? new Map<string, TerminalSession>()
  sessionsOf.set(app, sessions)
  const ofUnit = `${id} `
  // A person is the same one in another browser.
  const owner = caller.kind === 'session' ? (caller.userId ?? caller.credentialId) : caller.credentialId
  const key = `${ofUnit}${owner} ${name}`
  let session = sessions.get(key)
  if (!session || session.isOver) {
    const many = [...sessions.keys()].filter((each) => each.startsWith(ofUnit)).length
    if (many >= limits.terminalSessions)
      throw conflict(
        `The unit has ${many} terminal sessions already: end one of them, or open it by its name.`,
      )
    session = new TerminalSession(app, (begun) => runTerminal(app, caller, id, options, begun))
    sessions.set(key, session)
    const made = session
    const forget = () => {
      if (sessions.get(key) === made) sessions.delete(key)
    }
    made.ended.then(forget, forget)
  }
  return await session.attach(line, options.size)
}

type Kept = { at: number; output: ExecOutput }
type Client = { read: number; leave: (why: unknown) => void }

class TerminalSession {
  readonly ended: Promise<ExecExit>
  readonly #app: App
  readonly #input = createByteQueue<TerminalInput>(INPUT_BYTES, (each) =>
    each.kind === 'bytes' ? each.data.length : 0,
  )
  readonly #killed = new AbortController()
  /** What was printed last, each piece with the count of bytes before it. */
  #kept: Kept[] = []
  #printed = 0
  #pid: number | null = null
  #client: Client | null = null
  /** Aborted once a client comes, or the command ends. */
  #alone = new AbortController()
  isOver = false
  #changed = Promise.withResolvers<void>()

  constructor(app: App, run: (line: TerminalLine) => Promise<ExecExit>) {
    this.#app = app
    const line = {
      input: this.#input,
      signal: this.#killed.signal,
      onOutput: async (output: ExecOutput) => await this.#print(output),
      onBegun: (pid: number) => {
        this.#pid = pid
        this.#tell()
      },
    }
    this.ended = run(line).finally(() => {
      this.isOver = true
      this.#alone.abort(NOT_NEEDED)
      this.#input.end()
      this.#tell()
    })
    this.ended.catch(() => {})
  }

  async attach(line: TerminalLine, size: TerminalOptions['size']): Promise<ExecExit> {
    const left = Promise.withResolvers<never>()
    left.promise.catch(() => {})
    this.#client?.leave(conflict('Another client has attached to this terminal session.'))
    const client = { read: this.#kept[0]?.at ?? 0, leave: left.reject }
    this.#client = client
    this.#alone.abort(NOT_NEEDED)
    this.#tell()
    const gone = () => left.reject(line.signal.reason)
    line.signal.addEventListener('abort', gone, { once: true })
    if (line.signal.aborted) gone()
    // What runs full screen draws itself again.
    if (size) void this.#input.push({ kind: 'resize', size })
    this.#pass(line.input, client).catch(left.reject)
    try {
      return await Promise.race([this.#show(line, client), left.promise])
    } finally {
      line.signal.removeEventListener('abort', gone)
      if (this.#client === client) this.#detach(line.signal)
    }
  }

  /** A client that went away may come back; one that may not be here any more ends the command. */
  #detach({ aborted, reason }: AbortSignal): void {
    this.#client = null
    this.#tell()
    if (aborted && !isGone(reason)) return this.#killed.abort(reason)
    if (this.isOver) return
    this.#alone = new AbortController()
    this.#app.clock.sleep(limits.terminalDetachedMs, this.#alone.signal).then(
      () => this.#killed.abort(new Error('nobody came back to the terminal')),
      () => {},
    )
  }

  async #pass(input: AsyncIterable<TerminalInput>, client: Client): Promise<void> {
    for await (const each of input) {
      if (this.#client !== client) return
      await this.#input.push(each)
    }
  }

  /** Shows what was kept, and then what comes, until the command has ended. */
  async #show({ onOutput, onBegun }: TerminalLine, client: Client): Promise<ExecExit> {
    let isPidTold = false
    for (;;) {
      if (this.#client !== client) return await new Promise(() => {})
      if (!isPidTold && this.#pid !== null) {
        isPidTold = true
        onBegun?.(this.#pid)
      }
      const next = this.#kept.find(({ at }) => at >= client.read)
      if (next) {
        await onOutput(next.output)
        client.read = next.at + next.output.data.length
        this.#tell()
      } else if (this.isOver) return await this.ended
      else await this.#changed.promise
    }
  }

  /** A client that reads slowly slows the command down. Without one the oldest is dropped. */
  async #print(output: ExecOutput): Promise<void> {
    this.#kept.push({ at: this.#printed, output })
    this.#printed += output.data.length
    const most = limits.terminalKeptBytes
    const last = this.#kept.length - 1
    const first = this.#kept.findIndex(({ at }, index) => index === last || this.#printed - at <= most)
    this.#kept.splice(0, first)
    this.#tell()
    while (this.#client !== null && this.#printed - this.#client.read > most / 2 && !this.isOver)
      await this.#changed.promise
  }

  #tell(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers<void>()
  }
}

/** The client closed its connection, or lost it. */
function isGone(why: unknown): boolean {
  return why instanceof AppError && why.status === 499
}
