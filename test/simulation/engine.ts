// The connection of the server to the engine, like its socket: a request takes time before it has an effect, and its
// answer takes time after. Both can be slow, and are lost with the engine’s process. A request of a server that died
// may still take effect, in order for each machine (the engine has a lock for each).

import type { Engine, MachineRef } from '../../src/engine/engine.ts'
import { EngineError } from '../../src/engine/errors.ts'
import type { FarEngine } from '../../src/engine/fleet.ts'
import type { FakeEngine } from '../support/fake-engine/fake-engine.ts'
import { createLife, type Gate, type Gates, type Life } from './gates.ts'
import type { Random } from './random.ts'

export type SimulatedEngine = {
  for: (life: Life) => Engine
  /** The same over a connection that the server can cut, as to another machine. */
  farFor: (life: Life) => FarEngine
  /** The number of commands and transfers that run in a machine now. */
  atWorkIn: (id: string) => number
  /** The engine’s process dies. Machines keep running. */
  crash: () => void
  start: () => void
  isUp: () => boolean
  /** The server’s process died: some of its requests arrive, and the rest never do. */
  cut: (life: Life) => void
  /** Whether answers are slow at times. */
  setSlow: (isSlow: boolean) => void
  /** Whether nothing arrives and nothing is answered, without an error. */
  setSilent: (isSilent: boolean) => void
  /** The engine of another data directory is started here. */
  exchange: (fake: FakeEngine) => void
}

type Request = { life: Life; operation: string; id: string | null; gate: Gate | null }

const SLOW_PROBABILITY = 1 / 12

export function createSimulatedEngine(
  first: FakeEngine,
  gates: Gates,
  random: Random,
  note: (what: string) => void,
): SimulatedEngine {
  let fake = first
  const sent: Request[] = []
  const atWork = new Map<string, number>()
  const orphaned = createLife('nobody any more')
  let isUp = true
  let isSlow = true
  let isSilent = false
  const own = new WeakSet<Gate>()

  const drawSlow = () => isSlow && random.chance(SLOW_PROBABILITY)

  function close(life: Life, kind: 'engine' | 'event', what: string, isNext = () => true) {
    const isFree = () => !isSilent && isNext()
    const closed = gates.close(life, kind, what, { isFree, isSlow: drawSlow() })
    if (closed.gate) own.add(closed.gate)
    return closed
  }

  /** Waits until the request arrives. Rejects when the engine is down. */
  async function arrive(life: Life, operation: string, id: string | null): Promise<void> {
    const isNext = () => {
      const before = sent.slice(0, sent.indexOf(request))
      return id === null || before.every((other) => other.id !== id || other.life === life)
    }
    const what = id === null ? operation : `${operation} ${id}`
    const { gate, passed } = close(life, 'engine', what, isNext)
    const request: Request = { life, operation, id, gate }
    if (gate) sent.push(request)
    try {
      await passed
    } finally {
      forget(request)
    }
    // The certificate of a host lies in its data directory, so a server that calls the one finds no other behind it. What the
    // engine says of itself is compared too, as where it is called without a certificate.
    const isOther = fake !== first && operation !== 'capacity'
    if (!isUp || isOther) throw away()
  }

  function forget(request: Request): void {
    const index = sent.indexOf(request)
    if (index >= 0) sent.splice(index, 1)
    if (request.gate) gates.forget(request.gate)
  }

  async function ask<T>(
    life: Life,
    operation: string,
    id: string | null,
    work: () => Promise<T>,
  ): Promise<T> {
    await arrive(life, operation, id)
    if (id !== null) note(`the engine is told to ${operation} ${id}`)
    const [outcome] = await Promise.allSettled([work()])
    await close(life, 'engine', `${operation} is answered`).passed
    if (outcome.status === 'rejected') throw outcome.reason
    return outcome.value
  }

  /** Work for a caller that has died meanwhile keeps no unit awake. */
  async function whileAtWork<T>({ end }: Life, id: string, work: () => Promise<T>): Promise<T> {
    if (end.signal.aborted) return await work()
    const count = (change: 1 | -1) => atWork.set(id, (atWork.get(id) ?? 0) + change)
    const leave = () => void count(-1)
    count(1)
    end.signal.addEventListener('abort', leave, { once: true })
    try {
      return await work()
    } finally {
      end.signal.removeEventListener('abort', leave)
      if (!end.signal.aborted) leave()
    }
  }

  function engineOf(life: Life): Engine {
    const onRun = async <T>(operation: string, { id }: MachineRef, work: () => Promise<T>) =>
      await ask(life, operation, id, work)
    const tell =
      <T>(what: string, listen: (item: T) => void) =>
      (item: T) => {
        close(life, 'event', what).passed.then(
          () => listen(item),
          () => {},
        )
      }
    return {
      capabilities: async () => await ask(life, 'capabilities', null, () => fake.capabilities()),
      capacity: async () => await ask(life, 'capacity', null, () => fake.capacity()),
      renew: async (outcome) => await ask(life, 'renew', null, () => fake.renew(outcome)),
      metrics: async (id) => await ask(life, 'metrics', id, () => fake.metrics(id)),
      list: async () => await ask(life, 'list', null, () => fake.list()),
      recover: async (wanted) => await ask(life, 'recover', null, () => fake.recover(wanted)),
      pull: async (reference) => await ask(life, 'pull', null, () => fake.pull(reference)),
      create: async (spec) => await ask(life, 'create', spec.id, () => fake.create(spec)),
      start: async (ref, run) => await onRun('start', ref, () => fake.start(ref, run)),
      stop: async (ref, graceMs) => await onRun('stop', ref, () => fake.stop(ref, graceMs)),
      suspend: async (ref, graceMs) => await onRun('suspend', ref, () => fake.suspend(ref, graceMs)),
      fork: async (forks) => await ask(life, 'fork', forks[0]?.id ?? null, () => fake.fork(forks)),
      freeze: async (ref) => await onRun('freeze', ref, () => fake.freeze(ref)),
      thaw: async (ref) => await onRun('thaw', ref, () => fake.thaw(ref)),
      destroy: async (id) => await ask(life, 'destroy', id, () => fake.destroy(id)),
      restrict: async (ref, egress) => await onRun('restrict', ref, () => fake.restrict(ref, egress)),
      putAside: async (id) => await ask(life, 'putAside', id, () => fake.putAside(id)),
      exec: async (ref, request, onOutput, signal) =>
        await ask(life, 'exec', ref.id, () =>
          whileAtWork(life, ref.id, () => {
            // A command ends when its caller disconnects.
            const gone = signal ? AbortSignal.any([signal, life.end.signal]) : life.end.signal
            return fake.exec(ref, request, onOutput, gone)
          }),
        ),
      tasks: async (ref) => await onRun('tasks', ref, () => fake.tasks(ref)),
      signalTask: async (ref, ...asked) =>
        await onRun('signalTask', ref, () => fake.signalTask(ref, ...asked)),
      openLoopback: async (ref, port) => await onRun('openLoopback', ref, () => fake.openLoopback(ref, port)),
      terminal: async (ref, request, input, onOutput, signal) =>
        await ask(life, 'terminal', ref.id, () =>
          fake.terminal(ref, request, input, onOutput, AbortSignal.any([signal, life.end.signal])),
        ),
      startProcess: async (ref, request) =>
        await onRun('startProcess', ref, () => fake.startProcess(ref, request)),
      processes: async (id) => await ask(life, 'processes', id, () => fake.processes(id)),
      processOutput: async (id, ...asked) =>
        await ask(life, 'processOutput', id, () => fake.processOutput(id, ...asked)),
      followProcess: (id, process, after, signal) => fake.followProcess(id, process, after, signal),
      signalProcess: async (ref, ...asked) =>
        await onRun('signalProcess', ref, () => fake.signalProcess(ref, ...asked)),
      writeProcess: async (ref, ...asked) =>
        await onRun('writeProcess', ref, () => fake.writeProcess(ref, ...asked)),
      keepProcessAwake: async (id, process, until) =>
        await ask(life, 'keepProcessAwake', id, () => fake.keepProcessAwake(id, process, until)),
      forgetProcess: async (id, process) =>
        await ask(life, 'forgetProcess', id, () => fake.forgetProcess(id, process)),
      writeFile: async (ref, path, content) =>
        await ask(life, 'writeFile', ref.id, () =>
          whileAtWork(life, ref.id, () => fake.writeFile(ref, path, content)),
        ),
      receiveFile: async (ref, ...asked) =>
        await onRun('receiveFile', ref, () => fake.receiveFile(ref, ...asked)),
      sendFile: async (ref, ...asked) => await onRun('sendFile', ref, () => fake.sendFile(ref, ...asked)),
      watchFiles: async (ref, ...asked) =>
        await onRun('watchFiles', ref, () => fake.watchFiles(ref, ...asked)),
      statFile: async (ref, path) => await onRun('statFile', ref, () => fake.statFile(ref, path)),
      makeDirectory: async (ref, ...asked) =>
        await onRun('makeDirectory', ref, () => fake.makeDirectory(ref, ...asked)),
      moveFile: async (ref, ...asked) => await onRun('moveFile', ref, () => fake.moveFile(ref, ...asked)),
      readFile: async (ref, path, maxBytes) =>
        await ask(life, 'readFile', ref.id, () =>
          whileAtWork(life, ref.id, () => fake.readFile(ref, path, maxBytes)),
        ),
      listDirectory: async (ref, path) =>
        await onRun('listDirectory', ref, () => fake.listDirectory(ref, path)),
      removeFile: async (ref, ...asked) =>
        await onRun('removeFile', ref, () => fake.removeFile(ref, ...asked)),
      readArchive: async (ref, ...asked) =>
        await onRun('readArchive', ref, () => fake.readArchive(ref, ...asked)),
      writeArchive: async (ref, ...asked) =>
        await onRun('writeArchive', ref, () => fake.writeArchive(ref, ...asked)),
      logs: async (id, query) => await ask(life, 'logs', id, () => fake.logs(id, query)),
      followLogs: (id, after, signal) => fake.followLogs(id, after, signal),
      watchExits: async (onExit, signal) => {
        await arrive(life, 'watchExits', null)
        await fake.watchExits(tell('an exit is told', onExit), AbortSignal.any([signal, life.end.signal]))
      },
      watchProcesses: async (onEnd, signal) =>
        await fake.watchProcesses(onEnd, AbortSignal.any([signal, life.end.signal])),
      watchTraffic: async (onTraffic, signal) => {
        await arrive(life, 'watchTraffic', null)
        await fake.watchTraffic(
          tell('traffic is told', onTraffic),
          AbortSignal.any([signal, life.end.signal]),
        )
      },
      // What only says how far something is changes nothing, and is no step of a schedule.
      watchPulls: async (onPulls, signal) =>
        await fake.watchPulls(onPulls, AbortSignal.any([signal, life.end.signal])),
      watchEgress: async (onSeen, signal) => {
        await arrive(life, 'watchEgress', null)
        await fake.watchEgress(onSeen, AbortSignal.any([signal, life.end.signal]))
      },
    }
  }

  function cutOff(life: Life): void {
    for (const request of sent.filter((each) => each.life === life)) {
      const isLost = request.id === null || request.operation === 'exec' || random.chance(0.5)
      if (isLost || !request.gate) {
        forget(request)
      } else {
        note(`${request.gate.what} is still on its way`)
        request.gate.life = orphaned
      }
    }
  }

  return {
    for: engineOf,
    farFor: (life) => {
      let line = new AbortController()
      const cut = () => {
        cutOff(life)
        line.abort(away())
        line = new AbortController()
      }
      return { engine: overLine(engineOf(life), () => line.signal), cut }
    },
    atWorkIn: (id) => atWork.get(id) ?? 0,
    crash: () => {
      isUp = false
      fake.crash()
      for (const request of sent.filter(({ gate }) => gate?.life === orphaned)) forget(request)
      for (const gate of gates.closed()) if (own.has(gate)) gate.fail(away())
    },
    start: () => {
      isUp = true
    },
    isUp: () => isUp,
    cut: cutOff,
    setSlow: (slow) => {
      isSlow = slow
    },
    setSilent: (silent) => {
      isSilent = silent
    },
    exchange: (other) => {
      fake = other
    },
  }
}

/** Calls fail when the line is cut, and what follows the engine ends. */
function overLine(engine: Engine, line: () => AbortSignal): Engine {
  return new Proxy(engine, {
    get: (target, name: keyof Engine) => {
      const method = target[name] as (...args: unknown[]) => unknown
      if (name === 'followLogs' || name === 'followProcess') return method
      return async (...args: unknown[]) => {
        const signal = line()
        const bound = args.map((each) =>
          each instanceof AbortSignal ? AbortSignal.any([each, signal]) : each,
        )
        if (name === 'exec') bound[3] ??= signal
        const { promise: cut, reject } = Promise.withResolvers<never>()
        const onCut = () => reject(signal.reason)
        signal.addEventListener('abort', onCut, { once: true })
        try {
          return await Promise.race([method(...bound), cut])
        } finally {
          signal.removeEventListener('abort', onCut)
        }
      }
    },
  })
}

function away(): EngineError {
  return new EngineError('engine_away', 'The engine is not there; it may be restarting. Try again.')
}
