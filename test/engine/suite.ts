// What the claims of the contract are written with: machines that are made in one line and destroyed at the
// end of their test, and commands whose output is collected.

import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, onTestFinished, test } from 'vitest'
import type {
  Engine,
  Exit,
  ImageConfig,
  IsolationClass,
  LogLine,
  MachineRef,
} from '../../src/engine/engine.ts'
import type { MachineSpec, MachineStatus, RunSpec } from '../../src/engine/engine.ts'
import type { ExecRequest } from '../../src/engine/exec.ts'
import { isDeep } from '../support/part-of.ts'

export type OpenedEngine = {
  engine: Engine
  /** Digest of an image with the configuration `configuredImage` (below). */
  configuredImage: string
  /** Processor time a run has used so far, in an engine whose machines use any. */
  cpuNs?: (ref: MachineRef) => number
  /** The path of the network namespace of the host that has a machine, if that is not this one. */
  networkOf?: (ref: MachineRef) => string
  /**
   * Closes it and opens another over what it leaves: another process would do the same. Between the two
   * something may happen that neither sees.
   */
  reopen?: (between?: () => Promise<void>) => Promise<Engine>
  close(): Promise<void>
}

export type OpenEngine = () => Promise<OpenedEngine>

export type SuiteOptions = {
  isolation: IsolationClass
  /** A Debian with nothing special in it. */
  image: string
  /** An entry of that image's own environment. */
  imageEnv: { name: string; value: string }
  /** Only programs and shell grammar of src/engine/fake, and no large amounts. */
  small?: boolean
}

export type ExecResult = {
  exitCode: number
  timedOut: boolean
  stdout: string
  stderr: string
  bytes: Buffer
}

export type ExecOptions = Pick<ExecRequest, 'env' | 'cwd'> & {
  stdin?: Buffer | string
  timeoutMs?: number
  signal?: AbortSignal
}

export type Suite = ReturnType<typeof createSuite>

/** What an image may say of itself: everything but its root directory and ports. */
export const configuredImage: ImageConfig = {
  env: ['PATH=/usr/bin:/bin', 'FROM_IMAGE=yes'],
  entrypoint: ['echo', 'entry'],
  cmd: ['point'],
  workingDir: '/srv',
  user: '1:1',
  exposedPorts: [],
}

/** Enough for anything small in any class. */
const EXEC_TIMEOUT_MS = 20_000

export function createSuite(open: OpenEngine, options: SuiteOptions) {
  let opened: OpenedEngine | null = null
  let imageDigest = ''
  let made = 0

  const engine = (): Engine => {
    if (!opened) throw new Error('the engine is not open yet')
    return opened.engine
  }

  const specOf = (overrides: Partial<MachineSpec>): MachineSpec => ({
    id: `unit_${randomBytes(6).toString('hex')}${(made += 1)}`,
    imageDigest,
    isolation: options.isolation,
    size: { cpus: 1, memoryMb: 256, pids: 128, diskGb: 1 },
    volume: null,
    networkGroup: 1,
    ...overrides,
  })

  async function create(overrides: Partial<MachineSpec> = {}): Promise<MachineSpec> {
    const spec = specOf(overrides)
    await engine().create(spec)
    return spec
  }

  async function start(ref: MachineRef, run: Partial<RunSpec> = {}): Promise<MachineRef> {
    await engine().start(ref, {
      hostname: 'unit',
      entrypoint: null,
      cmd: ['sleep', 'infinity'],
      env: {},
      files: [],
      searchDomain: 'stack.internal',
      egress: null,
      ...run,
    })
    return ref
  }

  const suite = {
    options,
    /** A test that takes long on real machines, where the deep tier alone runs it. */
    long: test.skipIf(!isDeep && !options.small),
    engine,
    imageDigest: () => imageDigest,
    configuredImage: () => opened?.configuredImage ?? '',
    cpuNs(ref: MachineRef): number {
      if (!opened?.cpuNs) throw new Error('machines of this engine use no processor')
      return opened.cpuNs(ref)
    },
    networkOf: (ref: MachineRef): string | null => opened?.networkOf?.(ref) ?? null,
    specOf,

    async open(): Promise<void> {
      opened = await open()
      imageDigest = (await engine().pull(options.image)).digest
    },

    async close(): Promise<void> {
      await opened?.close()
      opened = null
    },

    /** Closes the engine and goes on with another over the same state. */
    async reopen(between?: () => Promise<void>): Promise<void> {
      if (!opened?.reopen) throw new Error('this engine cannot be opened again')
      opened = { ...opened, engine: await opened.reopen(between) }
    },

    /** A machine that is destroyed when the test that asks for it ends. */
    async create(overrides: Partial<MachineSpec> = {}): Promise<MachineSpec> {
      const spec = await create(overrides)
      onTestFinished(async () => await engine().destroy(spec.id))
      return spec
    },

    start,

    /** The same, running its first generation. */
    async running(run: Partial<RunSpec> = {}, overrides: Partial<MachineSpec> = {}): Promise<MachineRef> {
      const spec = await suite.create(overrides)
      return await start({ id: spec.id, generation: 1 }, run)
    },

    /** One running machine for all tests of a group. */
    shared(run: Partial<RunSpec> = {}, overrides: Partial<MachineSpec> = {}): () => MachineRef {
      let ref: MachineRef | null = null
      beforeAll(async () => {
        const spec = await create(overrides)
        ref = await start({ id: spec.id, generation: 1 }, run)
      })
      afterAll(async () => {
        if (ref) await engine().destroy(ref.id)
      })
      return () => {
        if (!ref) throw new Error('the shared machine is not there yet')
        return ref
      }
    },

    async exec(ref: MachineRef, argv: string[], given: ExecOptions = {}): Promise<ExecResult> {
      const output: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] }
      const { timeoutMs = EXEC_TIMEOUT_MS, env = {}, cwd = null } = given
      const stdin = given.stdin === undefined ? null : Buffer.from(given.stdin)
      const exit = await engine().exec(
        ref,
        { argv, stdin, timeoutMs, env, cwd },
        ({ stream, data }) => void output[stream].push(data),
        given.signal,
      )
      const bytes = Buffer.concat(output.stdout)
      return { ...exit, bytes, stdout: bytes.toString(), stderr: Buffer.concat(output.stderr).toString() }
    },

    async sh(ref: MachineRef, script: string, given: ExecOptions = {}): Promise<ExecResult> {
      return await suite.exec(ref, ['sh', '-c', script], given)
    },

    async status(id: string): Promise<MachineStatus | undefined> {
      return (await engine().list()).find((machine) => machine.id === id)
    },

    /** How the run of a machine ends, within `withinMs`. */
    async exitOf(ref: MachineRef, withinMs = 20_000): Promise<Exit> {
      return await eventually(async () => {
        const status = await suite.status(ref.id)
        return status?.generation === ref.generation && status.state === 'exited' ? status.exit : null
      }, withinMs)
    },

    /** The whole log once it has `count` lines. */
    async logged(id: string, count: number): Promise<LogLine[]> {
      return await eventually(async () => {
        const lines = await engine().logs(id, { after: null, since: null, limit: 500 })
        return lines.length >= count ? lines : null
      })
    },
  }
  return suite
}

/** Asks again until there is an answer. */
export async function eventually<T>(ask: () => Promise<T | null>, withinMs = 20_000): Promise<T> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const answer = await ask()
    if (answer !== null) return answer
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${ask.toString()}`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

/** The kind of EngineError something fails with; fails the test when it does not. */
export async function kindOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    if (error instanceof Error && 'kind' in error) return String(error.kind)
    throw error
  }
  throw new Error('it succeeded, and an EngineError was expected')
}
