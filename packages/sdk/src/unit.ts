// A unit as of the last response, and the operations on it. Methods that change it update `info`.

// `await using` in programs that are compiled for older versions of the language.
/// <reference lib="esnext.disposable" preserve="true" />

import { type Code, codeOf } from './code.ts'
import { type Command, execute, type ExecOptions, type SpawnOptions, startCommand } from './command.ts'
import type {
  Expose,
  Exposed,
  ExecResult,
  ForkResult,
  LogLine,
  LogPage,
  Sleep,
  SleepResult,
  Unit as UnitInfo,
  UnitChange,
  StackFork,
  UnitFork,
  EgressAsked,
  EgressDecision,
  EgressInForce,
  EgressLogLine,
  EgressLogPage,
  EgressSet,
  UnitCalls,
  UnitSecret,
  UnitSecretPut,
  UnitMetrics,
  MetricsHistory,
} from './contract.ts'
import { BerthError, isBerthError } from './errors.ts'
import { type Files, filesOf } from './files.ts'
import {
  type EgressLogOptions,
  type FollowEgressOptions,
  type FollowOptions,
  logLines,
  type LogOptions,
  logPage,
} from './logs.ts'
import { followMetrics } from './metrics.ts'
import type { RequestInit, Response } from './platform.ts'
import { printsAs } from './printed.ts'
import { type Processes, processesOf } from './processes.ts'
import { shellLine, type Word } from './shell.ts'
import { openTerminal, type Terminal, type TerminalOptions } from './terminal.ts'
import { type CallOptions, type MakeOptions, newKey, sleep, type Transport } from './transport.ts'

/** Results that only the response to the create has. */
export type Making = {
  /** Generated secrets and connection strings, and `URL` when it was published. */
  outputs: Record<string, string>
  /** Cost and sleep in words. */
  costLine: string | null
  /** Of a fork: what was copied of its source. */
  copied: ForkResult['copied'][string] | null
}

export type ForkOptions = UnitFork & MakeOptions
export type ExposeOptions = Omit<Expose, 'port'> & CallOptions

/** The longest that one call waits for units; a longer wait asks again. Some clients give up on a silent answer at 300 s. */
export const MAX_WAIT_MS = 240_000
export const DEFAULT_WAIT_MS = 120_000
const POLL_MS = { first: 100, longest: 2000 }

export class Unit implements AsyncDisposable {
  /** The unit as of the last response. */
  info: UnitInfo
  /** Only a unit that this object created has them: the service returns them once. */
  readonly outputs: Record<string, string>
  readonly costLine: string | null
  readonly copied: Making['copied']
  readonly files: Files
  /** For units of the image berth.local/code:1. */
  readonly code: Code
  readonly processes: Processes
  readonly #transport: Transport
  readonly #path: string

  constructor(transport: Transport, info: UnitInfo, making: Partial<Making> = {}) {
    this.#transport = transport
    this.#path = `/v1/units/${encodeURIComponent(info.id)}`
    this.info = info
    this.outputs = making.outputs ?? {}
    this.costLine = making.costLine ?? null
    this.copied = making.copied ?? null
    this.files = filesOf(transport, info.id)
    this.code = codeOf(transport, info.id)
    this.processes = processesOf(transport, info.id)
  }

  get id(): string {
    return this.info.id
  }

  get name(): string {
    return this.info.name
  }

  get state(): UnitInfo['state'] {
    return this.info.state
  }

  /** Its labels, and how long it lives from now on. */
  async change(change: UnitChange, options: CallOptions = {}): Promise<this> {
    return this.#renew(
      await this.#transport.json({ method: 'PATCH', path: this.#path, body: change, ...options }),
    )
  }

  async refresh(options: CallOptions = {}): Promise<this> {
    return this.#renew(await this.#transport.json({ method: 'GET', path: this.#path, ...options }))
  }

  /** Until it is no longer on its way to run. Throws `provider_error` where it could not be made, `timed_out` where it takes longer. */
  async ready({ timeoutMs = DEFAULT_WAIT_MS, signal }: CallOptions = {}): Promise<this> {
    const until = Date.now() + timeoutMs
    for (let pauseMs = POLL_MS.first; ['creating', 'starting'].includes(this.state); pauseMs *= 1.5) {
      if (Date.now() > until)
        throw new BerthError('timed_out', `Unit "${this.name}" is still ${this.state} after ${timeoutMs} ms.`)
      await sleep(Math.min(pauseMs, POLL_MS.longest), signal)
      await this.refresh({ signal })
    }
    if (this.state === 'error')
      throw new BerthError('provider_error', this.info.error ?? `Unit "${this.name}" could not be made.`, {
        details: { unitId: this.id },
      })
    return this
  }

  /** Runs a command to its end: an array as it is, a string through `sh -c`. A code other than 0 is no error without `check`. */
  async exec(command: string | readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
    return await execute(this.#transport, this.id, command, options)
  }

  /** A line for the unit's shell, with every value in it quoted: unit.sh`grep -c ${pattern} ${paths}`. */
  async sh(parts: TemplateStringsArray, ...words: Word[]): Promise<ExecResult> {
    return await this.exec(shellLine(parts.raw, words))
  }

  /** Starts a command and streams its output. It ends with its reader; `processes` has commands that continue. */
  spawn(command: string | readonly string[], options: SpawnOptions = {}): Command {
    return startCommand(this.#transport, this.id, command, options)
  }

  /** Opens a shell, or another interactive command. It ends with its connection. */
  async terminal(options: TerminalOptions = {}): Promise<Terminal> {
    return await openTerminal(this.#transport, this.id, options)
  }

  /** Its newest lines, or those after `since`; with `follow` also every line that comes, until its run ends. */
  logs(options: FollowOptions = {}): AsyncGenerator<LogLine> {
    return logLines(this.#transport, this.#path, 'logs', options)
  }

  /** One answer of the log, with the cursor to go on from. */
  async logPage(options: LogOptions = {}): Promise<LogPage> {
    return await logPage(this.#transport, this.#path, 'logs', options)
  }

  /** What it uses now: processor, memory, processes, disk and network. Counts go on from the start of its machine. */
  async metrics(options: CallOptions = {}): Promise<UnitMetrics> {
    return await this.#transport.json({ method: 'GET', path: `${this.#path}/metrics`, ...options })
  }

  /** The same every two seconds, until it is destroyed. */
  followMetrics(options: CallOptions = {}): AsyncGenerator<UnitMetrics> {
    return followMetrics(this.#transport, `${this.#path}/metrics`, options)
  }

  /** What it used: a day by the minute (the default), or a month by the hour. Times in which it did not run have no point. */
  async metricsHistory(
    range: MetricsHistory['range'] = 'day',
    options: CallOptions = {},
  ): Promise<MetricsHistory> {
    const query = { range }
    return await this.#transport.json({
      method: 'GET',
      path: `${this.#path}/metrics/history`,
      query,
      ...options,
    })
  }

  /** What it may reach, and since when that is in force. */
  async egress(options: CallOptions = {}): Promise<EgressInForce> {
    return await this.#transport.json({ method: 'GET', path: `${this.#path}/egress`, ...options })
  }

  /** Replaces what it may reach, also while it runs. Returns once that is in force, with the rules of before. */
  async setEgress(rules: EgressAsked, options: CallOptions = {}): Promise<EgressSet> {
    return await this.#transport.json({
      method: 'PUT',
      path: `${this.#path}/egress`,
      body: rules,
      ...options,
    })
  }

  /**
   * Gives a secret that it got with `hosts` another value, and other hosts, methods and paths if they are named, while it
   * runs: its requests have the value from the answer on. Throws `not_found` if it has no such secret.
   */
  async setSecret(name: string, secret: UnitSecretPut, options: CallOptions = {}): Promise<UnitSecret> {
    const path = `${this.#path}/secrets/${encodeURIComponent(name)}`
    return await this.#transport.json({ method: 'PUT', path, body: secret, ...options })
  }

  /** Writes into the audit log what reached it through a port of its own. For programs that pass such calls on. */
  async tellCalls(calls: UnitCalls['calls'], options: CallOptions = {}): Promise<void> {
    await this.#transport.json({ method: 'POST', path: `${this.#path}/calls`, body: { calls }, ...options })
  }

  /** Says whether it may reach a host, and why. Nothing is sent there. */
  async checkEgress(host: string, port = 443, options: CallOptions = {}): Promise<EgressDecision> {
    const call = { method: 'POST' as const, path: `${this.#path}/egress/check`, body: { host, port } }
    return await this.#transport.json({ ...call, ...options })
  }

  /**
   * Adds an entry to what it may reach, such as the `entry` of a refused line of its log. Of a unit that may reach every
   * host it changes nothing.
   */
  async allowEgress(entry: string, options: CallOptions = {}): Promise<EgressInForce> {
    const rules = await this.egress(options)
    if (rules.mode === 'open' || rules.allow.includes(entry)) return rules
    const { siblings, allow, deny = [] } = rules
    return await this.setEgress({ mode: 'listed', allow: [...allow, entry], deny, siblings }, options)
  }

  /**
   * What it reached and was refused, summed up by minute and kept for seven days: the newest lines, or those after
   * `since`; with `follow` also every line that comes or grows, until it is destroyed.
   */
  egressLog(options: FollowEgressOptions = {}): AsyncGenerator<EgressLogLine> {
    return logLines(this.#transport, this.#path, 'egress/log', options)
  }

  /** One answer of that log, with the cursor to go on from. */
  async egressLogPage(options: EgressLogOptions = {}): Promise<EgressLogPage> {
    return await logPage(this.#transport, this.#path, 'egress/log', options)
  }

  /** Publishes a port. A unit has one URL: another port moves it, and restarts the unit. */
  async expose(port: number, { signal, timeoutMs, ...asked }: ExposeOptions = {}): Promise<Exposed> {
    const call = { method: 'POST' as const, path: `${this.#path}/expose`, body: { ...asked, port } }
    const exposed = await this.#transport.json<Exposed>({
      ...call,
      signal,
      timeoutMs,
      extraMs: DEFAULT_WAIT_MS,
    })
    await this.refresh({ signal, timeoutMs })
    return exposed
  }

  /** The URL of a port, published for those who have the URL where it is not published yet. */
  async url(port: number, options: ExposeOptions = {}): Promise<string> {
    const there = this.info.endpoints.find((each) => each.port === port && each.protocol === 'http')
    const isAsAsked = options.rotate !== true && (options.mode === undefined || options.mode === there?.mode)
    return there && isAsAsked ? there.url : (await this.expose(port, { protocol: 'http', ...options })).url
  }

  /**
   * Sends a request to a port of it, published or not, as `fetch` does. Wakes it. Returns what answers there, with any status, and
   * throws what the service itself says, such as that nothing listens there.
   */
  async fetch(port: number, path = '/', init: RequestInit = {}): Promise<Response> {
    return await this.#transport.pass(this.#portPath(port, path), init)
  }

  /** Where that port is, for other clients: they send `authorization: Bearer` and the key. `ws` in place of `http` for a WebSocket. */
  portUrl(port: number, path = '/'): string {
    return this.#transport.url + this.#portPath(port, path)
  }

  #portPath(port: number, path: string): string {
    return `${this.#path}/ports/${port}${path.startsWith('/') ? '' : '/'}${path}`
  }

  /** A copy of it as it is now; `copied` of the copy says whether with its memory. */
  async fork(options: ForkOptions = {}): Promise<Unit> {
    const {
      units: [copy],
    } = await forkOf(this.#transport, this.#path, options)
    if (!copy) throw new BerthError('internal', 'A fork without a unit was answered.')
    return copy
  }

  /**
   * Changes how long it may go unused before it sleeps: `30m`, `2h`, `never`. With `stack`, for all units of its stack;
   * with `now`, it sleeps at once.
   */
  async sleep(
    window: string,
    { stack, now, signal, timeoutMs }: Omit<Sleep, 'sleep'> & CallOptions = {},
  ): Promise<this> {
    const body = { sleep: window, stack, now }
    const call = {
      method: 'POST' as const,
      path: `${this.#path}/sleep`,
      body,
      signal,
      timeoutMs,
      extraMs: DEFAULT_WAIT_MS,
    }
    const { units } = await this.#transport.json<SleepResult>(call)
    return this.#renew(units.find(({ id }) => id === this.id) ?? this.info)
  }

  /** Ends its processes and keeps its disk. */
  async stop(options: CallOptions = {}): Promise<this> {
    return await this.#act('POST', '/stop', options)
  }

  async start(options: CallOptions = {}): Promise<this> {
    return await this.#act('POST', '/start', options)
  }

  /** Gone for good, with its disk and its volume. */
  async destroy(options: CallOptions = {}): Promise<this> {
    return await this.#act('DELETE', '', options)
  }

  /** `await using unit = …` destroys it at the end of the block. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.state === 'destroyed') return
    await this.destroy().catch((error: unknown) => {
      if (!isBerthError(error, 'not_found')) throw error
    })
  }

  async #act(method: 'POST' | 'DELETE', action: string, options: CallOptions): Promise<this> {
    const call = { method, path: this.#path + action, extraMs: DEFAULT_WAIT_MS, ...options }
    return this.#renew(await this.#transport.json<UnitInfo>(call))
  }

  #renew(info: UnitInfo): this {
    this.info = info
    return this
  }
}

printsAs(Unit, ({ name, state, info: { image }, id }) => `Unit(${name}, ${state}, ${image}, ${id})`)

/** How long the service is to wait for units, and how long the caller then waits for it at most. */
export function waitOf({
  wait,
  waitTimeoutMs,
}: {
  wait?: boolean | undefined
  waitTimeoutMs?: number | undefined
}): {
  wait: boolean
  waitTimeoutMs: number
  waitMs: number
} {
  const waitMs = Math.min(waitTimeoutMs ?? DEFAULT_WAIT_MS, MAX_WAIT_MS)
  return { wait: wait ?? true, waitTimeoutMs: waitMs, waitMs: wait === false ? 0 : waitMs }
}

export type Forked = Omit<ForkResult, 'units'> & { units: Unit[] }

/** Forks the unit or the stack at that path, and returns the answer with its units as such. */
export async function forkOf(
  transport: Transport,
  path: string,
  { signal, timeoutMs, idempotencyKey = newKey(), ...asked }: (UnitFork | StackFork) & MakeOptions,
): Promise<Forked> {
  const { waitMs, ...wait } = waitOf(asked)
  const result = await transport.json<ForkResult>({
    method: 'POST',
    path: `${path}/fork`,
    body: { ...asked, ...wait },
    signal,
    timeoutMs,
    idempotencyKey,
    extraMs: waitMs,
  })
  const { copied, outputs, costLine } = result
  const units = result.units.map(
    (info) => new Unit(transport, info, { outputs, costLine, copied: copied[info.name] ?? null }),
  )
  return { ...result, units }
}
