// The real product as an operator runs it: the start command, its own data directory and ports, and then only
// what a caller has: HTTP and the credentials file.

import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { runOrThrow, SAFE_PATH } from '../../src/lib/process.ts'
import { readIfThere } from '../../src/lib/read-if-there.ts'
import type { Credentials } from '../../src/supervisor/credentials-file.ts'
import { type Instance, runDirOf } from '../../src/supervisor/instance.ts'
import { hostStateOf, type HostState } from './host-state.ts'
import { forgetDataDir, noteDataDir, PREPARED_VARIABLE } from './instances.ts'

/** Images are built once and used by all tests. */
export const IMAGES_DIR = '/var/lib/berth-test/images'
const READY_TIMEOUT_MS = 300_000
const project = fileURLToPath(new URL('../..', import.meta.url))

export type Answer<T> = { status: number; body: T }

/** What a test sets beside what all of them do, by the names of docs/settings.md. */
export type Settings = Record<string, string>

/** An installation: a data directory, and Berth started on it as often as a test likes. */
export class Berth {
  readonly dataDir: string
  /** The network namespace that it runs in, by its path; null for this one. */
  readonly namespace: string | null
  /** What its newest life has printed. */
  output = ''
  readonly #code: string
  readonly #within: string[]
  #child: ChildProcess | null = null
  #credentials: Credentials | null = null

  /**
   * `code`: where the release lies that is started; this one if not given. `namespace`: the network namespace that it runs
   * in, by its path, as if it were another machine. `within`: the command that starts it, as with fewer privileges.
   */
  constructor(dataDir: string, code = project, namespace: string | null = null, within: string[] = []) {
    this.dataDir = dataDir
    this.#code = code
    this.#within = within
    this.namespace = namespace
  }

  /** Starts it and returns when it is ready. One that runs is ended first, by Ctrl-C. */
  async start(settings: Settings = {}): Promise<this> {
    if (this.#child && !this.hasEnded) await this.pressCtrlC()
    return await this.launch(settings).ready()
  }

  /** Starts it and does not wait: for one that is to refuse, or to be killed on the way. */
  launch(settings: Settings = {}): this {
    const enter = this.namespace === null ? [] : ['nsenter', `--net=${this.namespace}`]
    const [command, ...args] = [...enter, ...this.#within, 'npm', 'start']
    const child = spawn(command, args, {
      cwd: this.#code,
      // A process group of its own, as a shell gives it: Ctrl-C goes to the group.
      detached: true,
      env: baseEnvironment(this.dataDir, settings),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    this.output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        if (this.#child === child) this.output += chunk.toString('utf8')
      })
    }
    return this
  }

  /** Until it says it is ready; throws what it printed when it ends instead. */
  async ready(): Promise<this> {
    const deadline = Date.now() + READY_TIMEOUT_MS
    while (!/Berth is ready[.,]/.test(this.output)) {
      if (this.#launched.exitCode !== null || Date.now() > deadline) {
        throw new Error(`Berth did not get ready:\n${this.output}`)
      }
      await delay(50)
    }
    // A host has none: its server is elsewhere.
    const text = await readIfThere(join(this.dataDir, 'credentials.json'))
    if (text !== null) this.#credentials = JSON.parse(text) as Credentials
    return this
  }

  get #launched(): ChildProcess {
    if (!this.#child) throw new Error('Berth was not started')
    return this.#child
  }

  get wasStarted(): boolean {
    return this.#child !== null
  }

  get hasEnded(): boolean {
    return this.#launched.exitCode !== null || this.#launched.signalCode !== null
  }

  /** Once it has ended: the exit code, or null when a signal ended it. */
  async exitCode(): Promise<number | null> {
    const child = this.#launched
    if (!this.hasEnded) await once(child, 'exit')
    return child.exitCode
  }

  get credentials(): Credentials {
    if (!this.#credentials) throw new Error('Berth is not ready')
    return this.#credentials
  }

  /** What its clients read from the environment. */
  get connection(): { BERTH_URL: string; BERTH_API_KEY: string } {
    const { baseUrl, apiKey } = this.credentials
    return { BERTH_URL: baseUrl, BERTH_API_KEY: apiKey }
  }

  async call<T>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
    const { baseUrl, apiKey } = this.credentials
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as T }
  }

  /** Ctrl-C: to every process of the terminal's foreground group. Resolves when the command has ended. */
  async pressCtrlC(): Promise<number | null> {
    const { exitCode, pid } = this.#launched
    if (exitCode === null && pid !== undefined) process.kill(-pid, 'SIGINT')
    return await this.exitCode()
  }

  async supervisorPid(): Promise<number> {
    return Number(await readFile(join(this.dataDir, 'supervisor.lock'), 'utf8'))
  }

  /** The process of a role, as a child of the supervisor; null while it is being started again. */
  async pidOf(role: string): Promise<number | null> {
    return (await this.pidsOf(role))[0] ?? null
  }

  /** Of a role with several processes, as gateways may be. */
  async pidsOf(role: string): Promise<number[]> {
    const supervisor = await this.supervisorPid()
    const found: number[] = []
    for (const pid of await processIds()) {
      const [command, status] = await Promise.all([read(`/proc/${pid}/cmdline`), read(`/proc/${pid}/status`)])
      const isChild = status.includes(`PPid:\t${supervisor}\n`)
      if (isChild && command.endsWith(`src/main.ts\0${role}\0`)) found.push(pid)
    }
    return found
  }

  async instance(): Promise<Instance> {
    return JSON.parse(await readFile(join(this.dataDir, 'instance.json'), 'utf8')) as Instance
  }

  async hostState(): Promise<HostState> {
    return await hostStateOf(await this.instance(), this.dataDir, this.namespace)
  }
}

export type DataDir = { path: string; remove(): Promise<void> }

/**
 * A data directory of its own; `remove` once nothing of the instance runs any more. In a run of the tests it has what was
 * prepared for all (prepared-data.ts), unless it is to be empty.
 */
export async function makeDataDir(path = nameDataDir(), { isEmpty = false } = {}): Promise<DataDir> {
  await mkdir(path, { mode: 0o700 })
  await noteDataDir(path)
  const prepared = process.env[PREPARED_VARIABLE]
  if (prepared !== undefined && !isEmpty) await fill(path, prepared)
  return {
    path,
    remove: async () => {
      const text = await readFile(join(path, 'instance.json'), 'utf8').catch(() => null)
      if (text !== null) await rm(runDirOf(JSON.parse(text) as Instance), { recursive: true, force: true })
      await rm(path, { recursive: true, force: true })
      await forgetDataDir(path)
    },
  }
}

/** The programs of Postgres are the same files: nobody writes to them. */
async function fill(path: string, prepared: string): Promise<void> {
  const [from, to] = [join(prepared, 'postgres'), join(path, 'postgres')]
  await mkdir(to)
  for (const name of await readdir(from)) {
    const how = name.startsWith('program-') ? '--link' : '--reflink=auto'
    await runOrThrow('cp', ['--archive', how, join(from, name), to], { timeoutMs: 60_000 })
  }
  await runOrThrow('cp', ['--archive', join(prepared, 'roles'), path], { timeoutMs: 60_000 })
}

/** Of a data directory that is still to be made. */
export function nameDataDir(): string {
  return `/var/tmp/berth-flow-${randomBytes(4).toString('hex')}`
}

/** Of a start, and of the operator's commands beside it. */
export function baseEnvironment(dataDir: string, settings: Settings = {}): Record<string, string> {
  // The default is a user's.
  const ready = process.env.BERTH_TEST_READY
  const workers = process.env.BERTH_TEST_GATEWAY_WORKERS
  return {
    PATH: SAFE_PATH,
    HOME: '/root',
    BERTH_DATA_DIR: dataDir,
    BERTH_IMAGES_DIR: IMAGES_DIR,
    // Other runs use them too.
    BERTH_IMAGE_UPDATES: 'never',
    BERTH_IMAGE_KEEP: 'never',
    // The tests' set-up has built it, if it can be.
    BERTH_RUNSC_BUILD: 'off',
    BERTH_POOL_GB: '16',
    BERTH_POOL_SPACE: 'sparse',
    BERTH_RESERVE_GB: '1',
    ...(ready === undefined ? {} : { BERTH_READY_MACHINES: ready }),
    ...(workers === undefined ? {} : { BERTH_GATEWAY_WORKERS: workers }),
    BERTH_API_ADDRESS: '127.0.0.1:0',
    BERTH_GATEWAY_HTTP: '127.0.0.1:0',
    BERTH_GATEWAY_TLS: '127.0.0.1:0',
    BERTH_GATEWAY_MYSQL: '127.0.0.1:0',
    BERTH_METRICS: '127.0.0.1:0',
    BERTH_GATEWAY_METRICS: '127.0.0.1:0',
    // Tests ask faster than one agent may.
    BERTH_RATE_REQUESTS: '100000',
    BERTH_RATE_CREATIONS: '100000',
    BERTH_RATE_EXECS: '100000',
    BERTH_TEAM_COMMANDS: '10000',
    ...settings,
  }
}

export async function processIds(): Promise<number[]> {
  return (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
}

/** What of a process can be read; it may end at any moment. */
async function read(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch(() => '')
}

/** Repeats until the check holds; its last error otherwise. */
export async function eventually<T>(check: () => Promise<T>, timeoutMs = 120_000): Promise<T> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (Date.now() > deadline) throw error
      await delay(100)
    }
  }
}
