// The engine in memory: what every test above the engine runs on. It keeps the promises of engine.ts
// (generations, idempotency, exits told again to each new watcher), and does on request what a real one does
// on a bad day: fail, hang, be slow, lose a machine, crash. It runs nothing; programs.ts says what commands do.

import type { EndedProcess } from '../../../src/engine/process.ts'
import { createHash } from 'node:crypto'
import type { Clock } from '../../../src/lib/clock.ts'
import type { MachineEgress, OnSeen } from '../../../src/engine/egress.ts'
import type { MachineSeen } from '../../../src/lib/egress/seen.ts'
import type { Capacity, Engine, Image, ImageConfig, PullProgress } from '../../../src/engine/engine.ts'
import type { ExecOutput, ExecRequest } from '../../../src/engine/exec.ts'
import type { MachineRef, MachineSpec, MachineStatus } from '../../../src/engine/engine.ts'
import { EngineError, type EngineErrorKind } from '../../../src/engine/errors.ts'
import { copyMachine, forkedOf } from './fork.ts'
import {
  type Call,
  createFaults,
  failing,
  type FaultOptions,
  hanging,
  type Operation,
  slow,
} from './faults.ts'
import { fileCalls } from './file-calls.ts'
import { memoryOf } from './memory.ts'
import { metricsOf } from './metrics.ts'
import {
  endRun,
  execInRun,
  type FakeMachine,
  followLog,
  newMachine,
  notRunning,
  printLine,
  queryLog,
  setFrozen,
  startRun,
} from './machine.ts'
import { terminalInRun } from './terminal.ts'
import {
  endBackground,
  findBackground,
  followBackground,
  forgetBackground,
  keepBackgroundAwake,
  writeBackground,
  outputAfter,
  signalBackground,
  startBackground,
  signalPid,
  statusesOf,
  tasksOf,
} from './processes.ts'
import { createWatchers } from './watchers.ts'

/** Answers a command instead of the built-in programs; null leaves it to them. */
export type ExecHandler = (command: { id: string; argv: string[]; stdin: Buffer | null }) => ExecAnswer | null
export type ExecAnswer = {
  exitCode?: number
  stdout?: string
  stderr?: string
  afterMs?: number
  endsAfterMs?: number
}

export type FakeControls = {
  /** Every call so far, oldest first. */
  calls: readonly Call[]
  machines(): MachineStatus[]
  /** Every machine whose disk is there, also those that were put aside. */
  disks(): string[]
  /** What a machine may reach, as its last start or `restrict` said. */
  egressOf(id: string): MachineEgress | null
  envOf(id: string): Record<string, string>
  /** The next calls of an operation fail. */
  fail(operation: Operation, failure: EngineErrorKind | Error, options?: FaultOptions): void
  /** The next calls of an operation wait until the function it returns is called, or the engine crashes. */
  hang(operation: Operation, options?: FaultOptions): () => void
  /** Forgets the trouble scripted for an operation. */
  heal(operation: Operation): void
  delay(operation: Operation, ms: number, options?: FaultOptions): void
  onExec(handler: ExecHandler): void
  /** What `pull` finds under a reference. Every other reference has a default configuration. */
  setImage(reference: string, config: Partial<ImageConfig>): void
  /** The first process of a machine prints a line, or ends on its own. */
  print(id: string, line: string): void
  endProcess(id: string, exit?: { code?: number; oomKilled?: boolean }): void
  /** Its port, at which something listens for it alone, is reached `at` another one. */
  listenAlone(id: string, port: number, at: number): void
  /** Something on the host kills all of it. */
  killMachine(id: string): void
  /** A sibling sends packets to these machines. */
  sendPackets(ids: string[]): void
  /** Machines reached hosts, or were refused. */
  seeEgress(lines: MachineSeen[]): void
  tellPulls(pulls: PullProgress[]): void
  /** What the host has from now on. */
  setCapacity(capacity: Partial<Capacity>): void
  /** Whether what machines have in memory can be kept and copied from now on; if not, what was kept is lost. */
  setMemory(available: boolean): void
  /** The host went down under it. */
  loseMachine(id: string): void
  /** The engine process dies and is started again: what was in flight rejects, machines go on. */
  crash(): void
}

export type FakeEngine = Engine & FakeControls
/** An engine of another machine says whose data directory it has. */
type FakeHost = { clock: Clock; subnet?: number; instance?: string | null }

const DEFAULT_CONFIG: ImageConfig = {
  env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
  entrypoint: [],
  cmd: ['sleep', 'infinity'],
  workingDir: '/',
  user: '',
  exposedPorts: [],
}

/** SIGTERM, as a well-behaved process ends of it. */
const STOPPED_CODE = 143
/** SIGKILL, as a process ends whose memory was kept. */
const KEPT_CODE = 137
const KILLED_CODE = 137

export function createFakeEngine({ clock, subnet = 99, instance = null }: FakeHost): FakeEngine {
  const faults = createFaults()
  const machines = new Map<string, FakeMachine>()
  const aside = new Map<string, FakeMachine>()
  const images = new Map<string, Image>()
  const configs = new Map<string, Partial<ImageConfig>>()
  const exits = createWatchers<MachineStatus>()
  const endedProcesses = createWatchers<EndedProcess>()
  const traffic = createWatchers<string[]>()
  const egressWatchers = new Set<OnSeen>()
  const pulls = createWatchers<PullProgress[]>()
  const seenByNobody: MachineSeen[] = []
  const capacity: Capacity = { cpus: 2, memoryMb: 65_536, availableMemoryMb: 65_536, teamDiskGb: 10_000 }
  const execHandlers: ExecHandler[] = []
  let addressesGiven = 0
  let canKeepMemory = true

  const find = (id: string): FakeMachine => {
    const machine = machines.get(id)
    if (!machine) throw new EngineError('unknown_machine', `There is no machine ${id}.`)
    return machine
  }
  const findRun = (ref: MachineRef): FakeMachine => {
    const machine = find(ref.id)
    if (!machine.run || machine.status.generation !== ref.generation) throw notRunning(ref.id)
    return machine
  }
  const findRunning = (ref: MachineRef): FakeMachine => {
    const machine = findRun(ref)
    if (machine.status.frozen) throw new EngineError('frozen', `The machine ${ref.id} is frozen.`)
    return machine
  }
  const end = (
    machine: FakeMachine,
    change: Partial<MachineStatus>,
    { asked = false, losing = false } = {},
  ): void => {
    if (!machine.run) return
    endBackground(machine, losing || change.state === 'lost' ? null : KILLED_CODE, clock)
    endRun(machine, change, { asked })
    exits.tell(machine.status)
  }
  const exited = (code: number, { oomKilled = false, byHost = false } = {}): Partial<MachineStatus> => ({
    state: 'exited',
    exit: { code, oomKilled, byHost, at: clock.now() },
  })

  /** A watcher that gives up ends well; only a crash of the engine is an error. */
  const watching = async (operation: Operation, signal: AbortSignal, begin: (gone: AbortSignal) => void) => {
    const watched = faults.run(
      call(operation),
      async (gone) => {
        begin(gone)
        await new Promise<never>(() => {})
      },
      signal,
    )
    await watched.catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
  }

  const engine: Engine = {
    capabilities: async () =>
      await faults.run(call('capabilities'), async () => ({
        classes: [
          { class: 'gvisor', available: true, detail: 'fake', memory: memoryCapability() },
          { class: 'runc', available: true, detail: 'fake', memory: memoryCapability() },
        ],
        defaultClass: 'gvisor',
        defaultReason: 'The fake engine isolates nothing.',
        egress: true,
        brokersSecrets: true,
      })),

    capacity: async () => await faults.run(call('capacity'), async () => ({ ...capacity, ...facts() })),
    renew: async () => null,

    pull: async (reference) =>
      await faults.run(call('pull'), async () => {
        const config = { ...DEFAULT_CONFIG, ...configs.get(reference) }
        const identity = JSON.stringify([reference, config])
        const digest = `sha256:${createHash('sha256').update(identity).digest('hex')}`
        images.set(digest, { reference, digest, config })
        return { reference, digest, config }
      }),

    create: async (spec: MachineSpec) =>
      await faults.run(call('create', { id: spec.id }), async () => {
        const existing = machines.get(spec.id)
        if (existing) return existing.status
        const image = images.get(spec.imageDigest)
        if (!image) throw new EngineError('image_not_found', 'The image of this machine is not here.')
        const machine = newMachine(spec, image.config, nextAddress())
        machines.set(spec.id, machine)
        return machine.status
      }),

    start: async (ref, run) =>
      await faults.run(call('start', ref), async () => {
        const machine = find(ref.id)
        const { generation, state } = machine.status
        if (ref.generation < generation) return { resumed: false }
        if (ref.generation === generation && state === 'lost')
          throw new EngineError('run_lost', `The run of ${ref.id} is lost.`)
        if (ref.generation > generation) {
          end(machine, exited(STOPPED_CODE), { asked: true, losing: true })
          startRun(machine, ref.generation, run, clock, (code) => end(machine, exited(code)))
        }
        return { resumed: machine.run?.resumed ?? false }
      }),

    stop: async (ref) =>
      await faults.run(call('stop', ref), async () => {
        const machine = find(ref.id)
        if (machine.status.generation !== ref.generation) return
        machine.memory = null
        end(machine, exited(STOPPED_CODE), { asked: true })
      }),

    suspend: async (ref) =>
      await faults.run(call('suspend', ref), async () => {
        const machine = find(ref.id)
        if (machine.status.generation !== ref.generation) return false
        if (canKeepMemory && machine.run) machine.memory = memoryOf(machine, ref.generation)
        const kept = machine.memory?.generation === ref.generation
        end(machine, exited(kept ? KEPT_CODE : STOPPED_CODE), { asked: true, losing: true })
        return kept
      }),

    fork: async (forks) =>
      await faults.run(call('fork', forks[0]), async () => {
        const sources = forks.map(({ source }) => find(source.id))
        for (const [i, fork] of forks.entries()) {
          const source = sources[i]
          if (!source || machines.has(fork.id)) continue
          machines.set(fork.id, copyMachine(source, fork, nextAddress(), canKeepMemory, clock.now()))
        }
        return forks.map(({ id }) => forkedOf(find(id)))
      }),

    freeze: async (ref) =>
      await faults.run(call('freeze', ref), async () => setFrozen(findRun(ref), true, clock)),

    thaw: async (ref) =>
      await faults.run(call('thaw', ref), async () => setFrozen(findRun(ref), false, clock)),

    destroy: async (id) =>
      await faults.run(call('destroy', { id }), async () => {
        const machine = machines.get(id)
        machines.delete(id)
        aside.delete(id)
        if (machine) endRun(machine, {}, { asked: true })
      }),

    putAside: async (id) =>
      await faults.run(call('putAside', { id }), async () => {
        const machine = machines.get(id)
        if (!machine) return
        if (machine.status.state === 'running') end(machine, { state: 'lost', exit: null })
        machines.delete(id)
        aside.set(id, machine)
      }),

    metrics: async (id) => await faults.run(call('metrics', { id }), async () => metricsOf(find(id), clock)),

    restrict: async (ref, egress) =>
      await faults.run(call('restrict', ref), async () => {
        const machine = find(ref.id)
        if (ref.generation >= machine.status.generation) machine.egress = egress
      }),

    list: async () => await faults.run(call('list'), async () => snapshot()),

    exec: async (ref, request, onOutput, signal) =>
      await faults.run(
        call('exec', ref),
        async (gone) => {
          const machine = findRunning(ref)
          const scripted = answerOf(ref.id, request)
          if (scripted) return await play(scripted, onOutput, gone)
          return await execInRun(machine, request, clock, onOutput, gone)
        },
        signal,
      ),

    tasks: async (ref) =>
      await faults.run(call('tasks', ref), async () => {
        return { tasks: tasksOf(findRunning(ref)), truncated: false }
      }),

    signalTask: async (ref, pid, signal) =>
      await faults.run(call('signalTask', ref), async () => signalPid(findRunning(ref), pid, signal, clock)),

    terminal: async (ref, request, input, onOutput, signal, onBegun) =>
      await faults.run(
        call('terminal', ref),
        async (gone) => await terminalInRun(findRunning(ref), request, input, clock, onOutput, gone, onBegun),
        signal,
      ),

    startProcess: async (ref, request) =>
      await faults.run(call('startProcess', ref), async () =>
        startBackground(findRunning(ref), request, clock, (process) =>
          endedProcesses.tell({ machine: ref.id, process }),
        ),
      ),

    processes: async (id) => await faults.run(call('processes', { id }), async () => statusesOf(find(id))),

    processOutput: async (id, process, after, maxBytes) =>
      await faults.run(call('processOutput', { id }), async () =>
        outputAfter(findBackground(find(id), process), after, maxBytes),
      ),

    async *followProcess(id, process, after, signal) {
      const { found, gone } = await faults.run(call('followProcess', { id }), async (gone) => ({
        found: findBackground(find(id), process),
        gone,
      }))
      yield* followBackground(found, after, AbortSignal.any([gone, signal]))
      gone.throwIfAborted()
    },

    signalProcess: async (ref, process, signal) =>
      await faults.run(call('signalProcess', ref), async () =>
        signalBackground(findBackground(findRunning(ref), process), signal, clock),
      ),

    writeProcess: async (ref, process, data, end) =>
      await faults.run(call('writeProcess', ref), async () =>
        writeBackground(findBackground(findRunning(ref), process), data, end),
      ),

    keepProcessAwake: async (id, process, until) =>
      await faults.run(call('keepProcessAwake', { id }), async () =>
        keepBackgroundAwake(findBackground(find(id), process), until),
      ),

    forgetProcess: async (id, process) =>
      await faults.run(call('forgetProcess', { id }), async () => forgetBackground(find(id), process, clock)),

    ...fileCalls({ faults, call, findRunning, clock }),

    logs: async (id, query) => await faults.run(call('logs', { id }), async () => queryLog(find(id), query)),

    async *followLogs(id, after, signal) {
      const { machine, gone } = await faults.run(call('followLogs', { id }), async (gone) => ({
        machine: find(id),
        gone,
      }))
      yield* followLog(machine, after, AbortSignal.any([gone, signal]))
      gone.throwIfAborted()
    },

    watchTraffic: (onTraffic, signal) =>
      watching('watchTraffic', signal, (gone) => traffic.add(onTraffic, gone)),

    watchEgress: (onSeen, signal) =>
      watching('watchEgress', signal, (gone) => {
        egressWatchers.add(onSeen)
        gone.addEventListener('abort', () => egressWatchers.delete(onSeen), { once: true })
        if (seenByNobody.length > 0) void onSeen(seenByNobody.splice(0))
      }),

    watchProcesses: (onEnd, signal) =>
      watching('watchProcesses', signal, (gone) => endedProcesses.add(onEnd, gone)),

    watchPulls: (onPulls, signal) => watching('watchPulls', signal, (gone) => pulls.add(onPulls, gone)),

    watchExits: (onExit, signal) =>
      watching('watchExits', signal, (gone) => {
        if (gone.aborted) return
        exits.add(onExit, gone)
        for (const status of snapshot()) {
          if (status.state === 'exited' || status.state === 'lost') onExit(status)
        }
      }),

    recover: async (wanted) =>
      await faults.run(call('recover'), async () => {
        for (const id of wanted) {
          const machine = aside.get(id)
          if (machine && aside.delete(id)) machines.set(id, machine)
        }
        const unwanted = [...machines.keys()].filter((id) => !wanted.includes(id))
        for (const id of unwanted) {
          const machine = machines.get(id)
          machines.delete(id)
          if (machine) endRun(machine, {}, { asked: true })
        }
        const lost = snapshot().filter((status) => status.state === 'lost').length
        return { adopted: machines.size - lost, removed: unwanted.length, lost }
      }),
  }

  function nextAddress(): string {
    addressesGiven += 1
    return `10.${subnet}.${Math.floor(addressesGiven / 250)}.${1 + (addressesGiven % 250)}`
  }

  const facts = (): Pick<Capacity, 'host'> =>
    instance
      ? { host: { instance, boot: clock.boot, nowMs: clock.now().getTime(), subnet: `10.${subnet}.0.0/16` } }
      : {}

  function memoryCapability() {
    return { available: canKeepMemory, detail: 'fake' }
  }

  function snapshot(): MachineStatus[] {
    return [...machines.values()].map((machine) => machine.status)
  }

  function answerOf(id: string, { argv, stdin }: ExecRequest): ExecAnswer | null {
    for (const handler of execHandlers) {
      const answer = handler({ id, argv, stdin })
      if (answer) return answer
    }
    return null
  }

  async function play(
    { exitCode = 0, stdout = '', stderr = '', afterMs = 0, endsAfterMs = 0 }: ExecAnswer,
    onOutput: (output: ExecOutput) => void | Promise<void>,
    gone: AbortSignal,
  ) {
    if (afterMs > 0) await clock.sleep(afterMs, gone)
    if (stdout) await onOutput({ stream: 'stdout', data: Buffer.from(stdout) })
    if (stderr) await onOutput({ stream: 'stderr', data: Buffer.from(stderr) })
    if (endsAfterMs > 0) await clock.sleep(endsAfterMs, gone)
    return { exitCode, timedOut: false }
  }

  const controls: FakeControls = {
    calls: faults.calls,
    machines: snapshot,
    disks: () => [...machines.keys(), ...aside.keys()],
    egressOf: (id) => find(id).egress,
    envOf: (id) => find(id).run?.spec.env ?? {},
    fail: (operation, failure, options = {}) => faults.add(operation, options, failing(failure)),
    hang: (operation, options = {}) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      faults.add(operation, options, hanging(promise))
      return resolve
    },
    delay: (operation, ms, options = {}) => faults.add(operation, options, slow(clock, ms)),
    heal: (operation) => faults.heal(operation),
    onExec: (handler) => void execHandlers.unshift(handler),
    setImage: (reference, config) => void configs.set(reference, config),
    endProcess: (id, { code = 0, oomKilled = false } = {}) => end(find(id), exited(code, { oomKilled })),
    listenAlone: (id, port, at) => void find(id).loopbacks.set(port, at),
    killMachine: (id) => end(find(id), exited(KILLED_CODE, { byHost: true })),
    sendPackets: traffic.tell,
    print: (id, line) => printLine(find(id), clock, line),
    tellPulls: pulls.tell,
    seeEgress: (lines) => {
      const newest = [...egressWatchers].at(-1)
      void (newest ? newest(lines) : seenByNobody.push(...lines))
    },
    setCapacity: (changed) => void Object.assign(capacity, changed),
    setMemory: (available) => {
      canKeepMemory = available
      if (!available) for (const machine of machines.values()) machine.memory = null
    },
    loseMachine: (id) => end(find(id), { state: 'lost', exit: null }),
    crash: () => faults.crash(),
  }

  return { ...engine, ...controls }
}

function call(operation: Operation, ref: { id?: string; generation?: number } = {}): Call {
  return { operation, id: ref.id ?? null, generation: ref.generation ?? null }
}
