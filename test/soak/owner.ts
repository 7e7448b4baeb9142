// A caller with its own unit, which it creates, uses, puts to sleep, stops and destroys at random. Each file is a
// register that only this caller writes: a read must return the content that was acknowledged last, or one that is
// still in doubt, with any kills between.

import type { Exec } from '../support/berth-units.ts'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Random } from '../simulation/random.ts'
import { pickKind } from './weighted.ts'
import { ask, type Reply, start, type World } from './world.ts'

/** On the root disk and on the volume. */
const PATHS = ['/root/a', '/root/b', '/data/a', '/data/b'] as const
const LONGEST = 30_000

const actions = {
  put: 22,
  'write by command': 14,
  get: 18,
  'read by command': 12,
  'sleep now': 10,
  'stop and start': 5,
  logs: 4,
  list: 4,
  replace: 2,
}

export type Owner = {
  /** Runs until the soak is over. */
  run: () => Promise<void>
  /** Reads everything once more. */
  verify: () => Promise<void>
}

export function createOwner(world: World, name: string, random: Random): Owner {
  const { journal } = world
  let id: string | null = null
  let version = 0
  let made = 0
  /** The contents that each file may have; null when it may not exist. */
  let registers = new Map<string, Set<string | null>>()

  const call = async <T>(
    kind: string,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<Reply<T> | null> => {
    for (;;) {
      const found = await ask<T>(
        world,
        kind,
        { method, path: `/v1/units/${id}${path}`, body },
        [200, 404, 409],
      )
      if (found?.status !== 409) return found
      // Its process was killed. Or it was too busy to be put to sleep, which is no fault.
      if (kind === 'sleep now') return null
      if (id !== null) await start(world, id)
    }
  }

  const make = async () => {
    version = 0
    registers = new Map(PATHS.map((path) => [path, new Set([null])]))
    id = null
    while (id === null && !world.over.aborted) {
      const spec = { name, image: 'berth.local/debian:12', size: 'nano', volume: { mount: '/data', gb: 1 } }
      const key = { 'idempotency-key': `${name}-${(made += 1)}` }
      const path = '/v1/units'
      const created = await ask<RunResult & { error?: { details?: { unitId?: string } } }>(
        world,
        'create',
        { method: 'POST', path, body: { spec, stack: name }, headers: key },
        [201, 502],
      )
      // The create did not get through, which is a fault already.
      if (created === null) return
      const unitId = created.body.units?.[0]?.id ?? created.body.error?.details?.unitId
      if (created.status === 201 && unitId) id = unitId
      // One of its processes was killed before its first run. The answer says so, and the unit can be destroyed.
      else if (unitId) await ask(world, 'destroy', { method: 'DELETE', path: `/v1/units/${unitId}` })
    }
  }

  const destroy = async () => {
    if (id !== null) await ask(world, 'destroy', { method: 'DELETE', path: `/v1/units/${id}` })
  }

  const valuesOf = (path: string) => registers.get(path) ?? new Set([null])

  const write = async (path: string, send: (content: string) => Promise<boolean | null>) => {
    const before = valuesOf(path)
    version += 1
    const line = `${name} ${made} ${path} version ${version}\n`
    const content = line.repeat(1 + random.below(LONGEST / line.length))
    registers.set(path, new Set([...before, content]))
    if (await send(content)) registers.set(path, new Set([content]))
  }

  const check = (path: string, found: string | null, how: string) => {
    const wanted = valuesOf(path)
    // Of all possible contents, the one that was read is the present one.
    if (wanted.has(found)) registers.set(path, new Set([found]))
    else
      journal.fault(
        `${name} ${path} by ${how}: found ${brief(found)}, of ${[...wanted].map(brief).join(' or ')}`,
      )
  }

  const query = (path: string) => `/files?path=${encodeURIComponent(path)}`
  const exec = (kind: string, cmd: string[], stdin?: string) =>
    call<Exec>(kind, 'POST', '/exec', { cmd, ...(stdin === undefined ? {} : { stdin }) })

  const read = async (path: string) => {
    const found = await call<{ contentBase64?: string }>('get', 'GET', query(path))
    if (!found) return
    const { contentBase64 } = found.body
    check(path, contentBase64 === undefined ? null : Buffer.from(contentBase64, 'base64').toString(), 'get')
  }

  const act: Record<keyof typeof actions, (path: string) => Promise<unknown>> = {
    put: (path) =>
      write(path, async (content) => {
        const put = await call<{ verified?: boolean }>('put', 'PUT', query(path), Buffer.from(content))
        return put && put.status === 200 && put.body.verified === true
      }),
    // A file name for each try, so that two concurrent tries do not spoil each other.
    'write by command': (path) =>
      write(path, async (content) => {
        const cmd = ['sh', '-c', 'cat > "$0.$$" && mv "$0.$$" "$0"', path]
        const written = await exec('write by command', cmd, content)
        return written && written.body.exitCode === 0
      }),
    get: read,
    'read by command': async (path) => {
      const found = await exec('read by command', ['cat', path])
      // A command that was killed has not read anything.
      if (!found || ![0, 1].includes(found.body.exitCode)) return
      check(path, found.body.exitCode === 0 ? found.body.stdout : null, 'command')
    },
    'sleep now': () => call('sleep now', 'POST', '/sleep', { sleep: '30m', now: true }),
    'stop and start': async () => {
      await call('stop', 'POST', '/stop')
      if (id !== null) await start(world, id)
    },
    logs: () => call('logs', 'GET', '/logs'),
    list: () => ask(world, 'list', { method: 'GET', path: '/v1/units' }),
    replace: async () => {
      await destroy()
      await make()
    },
  }

  return {
    run: async () => {
      await make()
      // Without a unit there is nothing to call.
      while (id !== null && !world.over.aborted) await act[pickKind(random, actions)](random.pick(PATHS))
    },
    verify: async () => {
      if (id !== null) for (const path of PATHS) await read(path)
    },
  }
}

function brief(content: string | null): string {
  return content === null ? 'nothing' : `${content.length} bytes of "${content.slice(0, 60).trim()}"`
}
