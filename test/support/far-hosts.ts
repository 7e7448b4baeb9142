// Hosts of a real Berth whose engines a test starts and stops by itself: the row of each says where it answers.

import { afterAll, beforeAll, expect } from 'vitest'
import { newId } from '../../src/lib/ids.ts'
import { insertHost } from '../../src/store/hosts.ts'
import { type Berth, eventually, type Settings } from './berth.ts'
import { type FarHost, openFarHost } from './far-engine.ts'
import { withDatabase } from './host-invariants.ts'
import { buildImages, createUnitOn, hosts, ownRowIn } from './host-lab.ts'
import type { OwnedUnit } from './unit-calls.ts'

export type FarHosts = {
  byName: (name: string) => FarHost
  idOf: (name: string) => string
  /** The operator's command. */
  command: (...args: string[]) => Promise<string>
  /** Its line of `hosts list`. */
  rowOf: (name: string) => Promise<string>
  untilReady: (name: string) => Promise<void>
  /** A unit of a new team there, and who may use it. */
  createOn: (name: string, spec?: Record<string, unknown>) => Promise<OwnedUnit>
}

type Given = { name: string; index: number; aheadMs?: number }

/** For the tests of the file. The server's own host takes no units. */
export function useFarHosts(berth: Berth, settings: () => Settings, given: Given[]): FarHosts {
  const far: FarHost[] = []
  const ids = new Map<string, string>()
  const command = async (...args: string[]) => await hosts(berth, settings(), ...args)
  const lines = async () => (await command('list')).split('\n')
  const rowOf = async (name: string) => (await lines()).find((row) => row.startsWith(`${name} `)) ?? ''
  const untilReady = async (name: string) =>
    await eventually(async () => expect(await rowOf(name)).toMatch(/^\S+ +ready /), 60_000)

  beforeAll(async () => {
    const options = { isolation: 'runc' } as const
    const since = new Date()
    await buildImages(berth.dataDir, ['debian:12'])
    for (const each of given) {
      far.push(await openFarHost({ ...each, fleetDir: berth.dataDir, options }))
      ids.set(each.name, newId('host'))
    }
    await withDatabase(await berth.instance(), async (db) => {
      for (const { name, address } of far)
        await insertHost(db, { id: ids.get(name) ?? '', name, address, region: null })
      await db
        .updateTable('hosts')
        .set({ member_since: since })
        .where('id', 'in', [...ids.values()])
        .execute()
    })
    for (const { name } of far) await untilReady(name)
    const near = ownRowIn(await command('list'))
    await command('drain', near.split(' ')[0] ?? '')
  })
  afterAll(async () => {
    const closed = await Promise.allSettled(far.map(async (each) => await each.close()))
    for (const each of closed) if (each.status === 'rejected') throw each.reason
  })

  const idOf = (name: string) => ids.get(name) ?? ''
  return {
    byName: (name) => {
      const found = far.find((each) => each.name === name)
      if (!found) throw new Error(`there is no host ${name}`)
      return found
    },
    idOf,
    command,
    rowOf,
    untilReady,
    createOn: async (name, spec = {}) => await createUnitOn({ berth, command, name }, spec),
  }
}
