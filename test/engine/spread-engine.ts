// Engines of several hosts as one, for the contract: each call goes through the fleet to the host that has its machine.
// The machines of one test are on one host, as those of a team are, and each test has the next host.

import { expect } from 'vitest'
import type { Engine } from '../../src/engine/engine.ts'
import type { Fleet, FleetHost } from '../../src/engine/fleet.ts'

export type Spread = {
  engine: Engine
  /** The host that has a machine, or had it. */
  hostOf: (id: string) => string
  /** How many machines each host was given. */
  counts: () => number[]
}

/** `hosts`: those of the fleet that get machines, and answer. */
export function spreadEngine(fleet: Fleet, hosts: FleetHost[]): Spread {
  const hostIds = hosts.map(({ id }) => id)
  const places = new Map<string, string>()
  const tests = new Map<string, string>()
  const engineOn = (hostId: string) => fleet.engineOf({ hostId })
  const all = hostIds.map(engineOn)
  const first = hostIds[0] ?? ''
  const hostOf = (id: string) => places.get(id) ?? first

  function place(id: string): string {
    const test = expect.getState().currentTestName ?? ''
    const hostId = places.get(id) ?? tests.get(test) ?? hostIds[tests.size % hostIds.length] ?? first
    tests.set(test, hostId)
    places.set(id, hostId)
    return hostId
  }

  const everywhere: Partial<Engine> = {
    capabilities: async () => await engineOn(first).capabilities(),
    capacity: async () => await engineOn(first).capacity(),
    pull: async (reference, waiter) => {
      const [image] = await Promise.all(all.map(async (engine) => await engine.pull(reference, waiter)))
      if (!image) throw new Error('there is no host')
      return image
    },
    create: async (machine) => await engineOn(place(machine.id)).create(machine),
    fork: async (forks) => {
      const known = forks.map(({ source }) => source.id).filter((id) => places.has(id))
      const [hostId = first, ...others] = new Set(known.map(hostOf))
      if (others.length > 0) throw new Error('a test forks machines of two hosts at once')
      for (const { id } of forks) places.set(id, hostId)
      return await engineOn(hostId).fork(forks)
    },
    list: async () => (await Promise.all(all.map(async (engine) => await engine.list()))).flat(),
    watchExits: async (onExit, signal) =>
      await onEach(async (engine) => await engine.watchExits(onExit, signal)),
    watchProcesses: async (onEnd, signal) =>
      await onEach(async (engine) => await engine.watchProcesses(onEnd, signal)),
    watchTraffic: async (onTraffic, signal) =>
      await onEach(async (engine) => await engine.watchTraffic(onTraffic, signal)),
    watchEgress: async (onSeen, signal) =>
      await onEach(async (engine) => await engine.watchEgress(onSeen, signal)),
    recover: async (wanted) => {
      const reports = hostIds.map(
        async (hostId) => await engineOn(hostId).recover(wanted.filter((id) => hostOf(id) === hostId)),
      )
      const sum = { adopted: 0, removed: 0, lost: 0 }
      for (const { adopted, removed, lost } of await Promise.all(reports)) {
        sum.adopted += adopted
        sum.removed += removed
        sum.lost += lost
      }
      return sum
    },
  }

  async function onEach(work: (engine: Engine) => Promise<void>): Promise<void> {
    await Promise.all(all.map(work))
  }

  const engine = new Proxy(everywhere, {
    // What is returned by an async function is asked whether it is a promise.
    get: (_target, name: keyof Engine | 'then') =>
      name === 'then'
        ? undefined
        : (everywhere[name] ??
          ((about: string | { id: string }, ...rest: unknown[]) => {
            const host = engineOn(hostOf(typeof about === 'string' ? about : about.id))
            return (host[name] as (...args: unknown[]) => unknown)(about, ...rest)
          })),
  }) as Engine
  return {
    engine,
    hostOf,
    counts: () => hostIds.map((hostId) => [...places.values()].filter((each) => each === hostId).length),
  }
}
