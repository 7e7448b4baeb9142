// Commands of a model that may go on after the call: what each has printed, and its standard input.

import { type SandboxExecResult, SandboxPtyError, type WriteStdinArgs } from '@openai/agents/sandbox'
import type { Terminal } from '../terminal.ts'
import type { Unit } from '../unit.ts'

type Started = {
  command: string[]
  cwd: string
  env: Record<string, string>
  user?: string | undefined
  tty?: boolean
  yieldTimeMs?: number
}

type Shell = {
  terminal: Terminal
  isTty: boolean
  /** What it printed since it was asked last. */
  unread: { stdout: string; stderr: string }
  exitCode: number | null
  ended: Promise<void>
}

const DEFAULT_YIELD_MS = { start: 10_000, write: 250 }
/** What Ctrl-C is as a character. */
const INTERRUPT = '\u0003'
const BYTES_PER_TOKEN = 4

export class Shells {
  readonly #unit: Unit
  readonly #running = new Map<number, Shell>()
  #last = 0

  constructor(unit: Unit) {
    this.#unit = unit
  }

  /** Starts a command, and answers once it has ended or its time to yield is over. */
  async start({
    tty = false,
    yieldTimeMs = DEFAULT_YIELD_MS.start,
    ...asked
  }: Started): Promise<SandboxExecResult> {
    const { command, cwd, env, user } = asked
    const terminal = await this.#unit.terminal({ command, cwd, env, user, tty })
    const id = (this.#last += 1)
    const shell = shellOf(terminal, tty)
    this.#running.set(id, shell)
    return await this.#answer(id, shell, yieldTimeMs)
  }

  /** Types into a command that runs, or only looks at it. */
  async write({
    sessionId,
    chars = '',
    yieldTimeMs = DEFAULT_YIELD_MS.write,
  }: WriteStdinArgs): Promise<SandboxExecResult> {
    const shell = this.#running.get(sessionId)
    if (!shell)
      throw new SandboxPtyError(`No command runs as session ${sessionId}.`, {}, 'pty_session_not_found')
    if (chars === INTERRUPT && !shell.isTty) shell.terminal.signal('INT')
    else if (chars !== '') shell.terminal.write(chars)
    return await this.#answer(sessionId, shell, yieldTimeMs)
  }

  end(): void {
    for (const { terminal } of this.#running.values()) terminal.close()
    this.#running.clear()
  }

  async #answer(id: number, shell: Shell, waitMs: number): Promise<SandboxExecResult> {
    const startedAt = performance.now()
    const isOver = await Promise.race([shell.ended.then(() => true), pause(waitMs)])
    const { stdout, stderr } = shell.unread
    shell.unread = { stdout: '', stderr: '' }
    if (isOver) this.#running.delete(id)
    return {
      output: stdout + stderr,
      stdout,
      stderr,
      wallTimeSeconds: (performance.now() - startedAt) / 1000,
      exitCode: isOver ? shell.exitCode : null,
      ...(isOver ? {} : { sessionId: id }),
    }
  }
}

function shellOf(terminal: Terminal, isTty: boolean): Shell {
  const shell: Shell = {
    terminal,
    isTty,
    unread: { stdout: '', stderr: '' },
    exitCode: null,
    ended: Promise.resolve(),
  }
  const read = async () => {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
    for await (const { stream, bytes } of terminal.output)
      shell.unread[stream] += decoders[stream].decode(bytes, { stream: true })
    shell.exitCode = (await terminal.wait()).exitCode
  }
  shell.ended = read()
  // A failure is passed to the call that waits next.
  shell.ended.catch(() => {})
  return shell
}

const pause = async (ms: number) =>
  await new Promise<false>((resolve) => {
    setTimeout(() => resolve(false), ms)
  })

/** The text that a model reads. */
export function asTold(
  { exitCode, sessionId, output, wallTimeSeconds }: SandboxExecResult,
  maxTokens?: number,
): string {
  const ended = exitCode === null ? 'The command ran out of its time.' : `Exit code: ${exitCode}`
  const state =
    sessionId === undefined ? ended : `Still running: go on with it by write_stdin, session ${sessionId}.`
  return `${state}\nWall time: ${wallTimeSeconds.toFixed(1)} s\nOutput:\n${cut(output, maxTokens)}`
}

/** Its beginning and its end, with about as many tokens in all as are asked for. */
function cut(text: string, maxTokens: number | undefined): string {
  const room = (maxTokens ?? Number.POSITIVE_INFINITY) * BYTES_PER_TOKEN
  if (text.length <= room) return text
  const half = Math.floor(room / 2)
  return `${text.slice(0, half)}\n… ${text.length - 2 * half} characters are left out …\n${text.slice(text.length - half)}`
}
