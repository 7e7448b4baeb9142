// The engine of a host that was given up: it has no machine, so that what was on it can be ended and deleted.

import { type Engine, isolationClasses } from './engine.ts'
import { HostLostError } from './errors.ts'

const answers: Partial<Engine> = {
  capabilities: async () => ({
    classes: [],
    defaultClass: isolationClasses[0],
    defaultReason: 'The host was given up.',
  }),
  renew: async () => null,
  list: async () => [],
  recover: async () => ({ adopted: 0, removed: 0, lost: 0 }),
  stop: async () => {},
  destroy: async () => {},
  putAside: async () => {},
  restrict: async () => {},
  watchExits: async (_onExit, signal) => await untilAborted(signal),
  watchProcesses: async (_onEnd, signal) => await untilAborted(signal),
  watchTraffic: async (_onTraffic, signal) => await untilAborted(signal),
  watchEgress: async (_onSeen, signal) => await untilAborted(signal),
  watchPulls: async (_onPulls, signal) => await untilAborted(signal),
  followLogs: async function* () {
    yield await unknown()
  },
  followProcess: async function* () {
    yield await unknown()
  },
}

export const emptyEngine = new Proxy(answers, {
  get: (_target, name: keyof Engine) => answers[name] ?? unknown,
}) as Engine

async function unknown(): Promise<never> {
  return await Promise.reject(new HostLostError())
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
