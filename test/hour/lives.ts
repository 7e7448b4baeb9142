// What becomes of units in an hour: each life makes units of its own, and has them run, sleep, wake, stop, fork and go,
// with pauses that are drawn. They keep no account: the stopwatch does (stopwatch.ts).

import { setTimeout as delay } from 'node:timers/promises'
import type { Size } from '../../src/contract/policy.ts'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Unit } from '../../src/contract/unit.ts'
import type { Random } from '../simulation/random.ts'
import { ask, start, type World } from '../soak/world.ts'

export type Life = {
  name: string
  size: Size
  /** Of its volume; 0: it has none. */
  gb: number
  live: (own: Own) => Promise<void>
}

/** The units of one life. */
export type Own = {
  make: (spec?: Record<string, unknown>) => Promise<string>
  fork: (id: string) => Promise<string>
  act: (id: string, action: string, body?: unknown) => Promise<void>
  /** A command in it, which wakes it. */
  use: (id: string) => Promise<void>
  start: (id: string) => Promise<void>
  destroy: (id: string) => Promise<void>
  get: (id: string) => Promise<Unit | null>
  /** Between so many seconds. False: the hour is over. */
  pause: (least: number, most: number) => Promise<boolean>
}

export const lives: Life[] = [
  { name: 'steady', size: 'nano', gb: 2, live: steadily },
  { name: 'busy', size: 'medium', gb: 0, live: steadily },
  { name: 'idle', size: 'small', gb: 1, live: idly },
  { name: 'nap', size: 'small', gb: 0, live: nappingly },
  { name: 'stop', size: 'nano', gb: 1, live: stoppingly },
  { name: 'fork', size: 'nano', gb: 1, live: forkingly },
  { name: 'come-and-go', size: 'large', gb: 0, live: briefly },
  { name: 'exit', size: 'nano', gb: 0, live: exitingly },
  { name: 'slow', size: 'nano', gb: 3, live: slowly },
]

/** Runs all the time, but for when its machine is killed. */
async function steadily({ make, get, start, pause }: Own): Promise<void> {
  const id = await make({ sleep: 'never' })
  while (await pause(5, 10)) if ((await get(id))?.state !== 'running') await start(id)
}

/** Falls asleep by itself, a minute after it was used. */
async function idly({ make, use, pause }: Own): Promise<void> {
  const id = await make({ sleep: '1m' })
  while (await pause(70, 150)) await use(id)
}

/** Is frozen, and now and then long enough to be stopped. */
async function nappingly({ make, act, use, pause }: Own): Promise<void> {
  const id = await make()
  while (await pause(3, 20)) {
    await act(id, 'sleep', { sleep: '30m', now: true })
    await pause(2, 45)
    await use(id)
  }
}

async function stoppingly({ make, act, start, pause }: Own): Promise<void> {
  const id = await make()
  while (await pause(5, 30)) {
    await act(id, 'stop')
    await pause(5, 30)
    await start(id)
  }
}

async function forkingly({ make, fork, start, destroy, pause }: Own): Promise<void> {
  const id = await make()
  while (await pause(10, 40)) {
    await start(id)
    const copy = await fork(id)
    await pause(10, 40)
    await destroy(copy)
  }
}

async function briefly({ make, destroy, pause }: Own): Promise<void> {
  do {
    const id = await make()
    await pause(3, 60)
    await destroy(id)
  } while (await pause(2, 20))
}

/** Its process ends by itself. */
async function exitingly({ make, start, pause }: Own): Promise<void> {
  const id = await make({ entrypoint: ['sleep', '17'] })
  while (await pause(20, 60)) await start(id)
}

/** Is ready, and paid for, some seconds after its process has started. */
async function slowly({ make, act, start, pause }: Own): Promise<void> {
  const healthcheck = { cmd: ['test', '-e', '/tmp/ready'], intervalMs: 500, timeoutMs: 60_000 }
  const id = await make({
    entrypoint: ['sh', '-c', 'rm -f /tmp/ready; sleep 6; touch /tmp/ready; exec sleep 86400'],
    healthcheck,
  })
  while (await pause(20, 60)) {
    await act(id, 'stop')
    await pause(5, 15)
    await start(id)
  }
}

/** `volumes` is told how many GB each unit has. */
export function ownUnits(
  world: World,
  { name, size, gb }: Life,
  { suffix, random, volumes }: { suffix: string; random: Random; volumes: Map<string, number> },
): Own {
  let made = 0
  const post = async <T>(kind: string, path: string, body: unknown, headers: Record<string, string> = {}) =>
    await ask<T>(world, kind, { method: 'POST', path, body, headers }, [200, 201, 409, 502])
  /** Under a key of its own, so that it is made once; another one where something that it needs was killed. */
  const add = async (kind: string, path: string, bodyFor: (key: string) => unknown): Promise<string> => {
    for (;;) {
      const key = `${name}-${suffix}-${(made += 1)}`
      const answer = await post<Partial<RunResult>>(kind, path, bodyFor(key), { 'idempotency-key': key })
      const [unit] = answer?.body.units ?? []
      if (unit) volumes.set(unit.id, gb)
      if (unit) return unit.id
      if (answer === null || world.over.aborted) throw new Error(`${name} was given no unit`)
    }
  }
  return {
    make: async (extra = {}) => {
      const volume = gb === 0 ? {} : { volume: { mount: '/data', gb } }
      const spec = { image: 'berth.local/debian:12', size, ...volume, ...extra }
      const more = { stack: `${name}-${suffix}`, waitTimeoutMs: 300_000 }
      return await add('create', '/v1/units', (key) => ({ spec: { name: key, ...spec }, ...more }))
    },
    fork: async (id) => await add('fork', `/v1/units/${id}/fork`, (key) => ({ name: key })),
    act: async (id, action, body) => void (await post(action, `/v1/units/${id}/${action}`, body)),
    use: async (id) => void (await post('exec', `/v1/units/${id}/exec`, { cmd: ['true'] })),
    start: async (id) => await start(world, id),
    destroy: async (id) => void (await ask(world, 'destroy', { method: 'DELETE', path: `/v1/units/${id}` })),
    get: async (id) =>
      (await ask<Unit>(world, 'get', { method: 'GET', path: `/v1/units/${id}` }))?.body ?? null,
    pause: async (least, most) => {
      const ms = least * 1000 + random.below((most - least) * 1000)
      await delay(ms, undefined, { signal: world.over }).catch(() => {})
      return !world.over.aborted
    },
  }
}
