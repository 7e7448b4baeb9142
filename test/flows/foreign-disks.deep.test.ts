// Recovery of a host removes nothing of another one's, nor of a unit whose row it cannot see: two hosts come back with each
// other's disks, a row names another data directory or another host, and the database is restored from an older copy.

import { readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { freePort } from '../../src/lib/free-port.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { eventually } from '../support/berth.ts'
import type { Exec } from '../support/berth-units.ts'
import { swapBack, swapDisks } from '../support/far-engine.ts'
import { useFarHosts } from '../support/far-hosts.ts'
import { withDatabase } from '../support/host-invariants.ts'
import { callAs, type Owner } from '../support/unit-calls.ts'
import { useBerth } from '../support/use-berth.ts'

const settings = { BERTH_HOSTS_ADDRESS: '', BERTH_ISOLATION: 'runc' }
beforeAll(async () => {
  settings.BERTH_HOSTS_ADDRESS = `0.0.0.0:${await freePort('0.0.0.0')}`
})
const berth = useBerth(() => settings)
const far = useFarHosts(berth, () => settings, [
  { name: 'east', index: 34 },
  { name: 'west', index: 35 },
])

type Made = { owner: Owner; unit: Unit }
const names = ['east', 'west'] as const

const read = async ({ owner, unit }: Made) => (await callAs<Unit>(owner, 'GET', `/v1/units/${unit.id}`)).body
const run = async ({ owner, unit }: Made, cmd: string[]) => {
  const answer = await callAs<Exec>(owner, 'POST', `/v1/units/${unit.id}/exec`, { cmd })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  return answer.body.stdout
}
const disksOn = async (name: string) => {
  const { pool } = far.byName(name).host.paths
  const all = await Promise.all(['disks', 'volumes'].map(async (kind) => await readdir(join(pool, kind))))
  return all
    .flat()
    .filter((id) => id.startsWith('unit_'))
    .toSorted()
}
const asideOn = async (name: string) => await readdir(far.byName(name).host.paths.aside).catch(() => [])
const untilAway = async (name: string, why: RegExp) =>
  await eventually(
    async () => expect(await far.command('list')).toMatch(new RegExp(`${name} +away .*${why.source}`)),
    60_000,
  )
/** Two rounds of everything that the server does with a host that it takes back. */
const afterRounds = async () => await new Promise((resolve) => setTimeout(resolve, 25_000))

async function createWithLetter(name: string): Promise<Made> {
  const made = await far.createOn(name, { cmd: ['sleep', 'infinity'], volume: { mount: '/data', gb: 1 } })
  await run(made, ['sh', '-c', 'hostname > /root/letter; echo data > /data/letter; sync'])
  return made
}
const hasLetter = async (made: Made) =>
  expect(await run(made, ['cat', '/root/letter', '/data/letter'])).toBe('unit\ndata\n')

describe('of two hosts with units', () => {
  const running: Record<string, Made> = {}
  const stopped: Record<string, Made> = {}
  const units = () =>
    names.flatMap((name) => [running[name], stopped[name]]).filter((each) => each !== undefined)
  let disks: string[][] = []
  const expectDisks = async () => expect(await Promise.all(names.map(disksOn))).toEqual(disks)
  const untilUsable = async () => {
    for (const each of units()) await eventually(async () => await hasLetter(each), 60_000)
  }

  beforeAll(async () => {
    for (const name of names) {
      running[name] = await createWithLetter(name)
      const other = await createWithLetter(name)
      stopped[name] = other
      const { status } = await callAs(other.owner, 'POST', `/v1/units/${other.unit.id}/sleep`, {
        sleep: '10m',
        now: true,
      })
      expect(status).toBe(200)
    }
    disks = await Promise.all(names.map(disksOn))
    expect(disks.map(({ length }) => length)).toEqual([4, 4])
  })

  it('neither is used with the disks of the other, which lose nothing, and go on where they belong', async () => {
    const [east, west] = names.map(far.byName)
    if (!east || !west) throw new Error('no hosts')
    await swapDisks(east, west)
    for (const name of names) await untilAway(name, /runs the data directory of/)
    await afterRounds()
    await expectDisks()
    for (const name of names) expect(await asideOn(name)).toEqual([])
    for (const { owner, unit } of units())
      expect(await callAs(owner, 'POST', `/v1/units/${unit.id}/exec`, { cmd: ['true'] })).toMatchObject({
        status: 503,
        body: { error: { details: { reason: 'host_away' } } },
      })
    await swapBack(east, west)
    for (const name of names) await far.untilReady(name)
    await untilUsable()
    await expectDisks()
  })

  it('one whose row names another data directory is not used, and loses nothing', async () => {
    const setInstance = async (instance: string) =>
      await withDatabase(await berth.instance(), async (db) => {
        await db.updateTable('hosts').set({ instance }).where('id', '=', far.idOf('east')).execute()
      })
    await setInstance('zzzz')
    await untilAway('east', /runs the data directory of/)
    await afterRounds()
    await expectDisks()
    await setInstance(far.byName('east').host.instance.id)
    await far.untilReady('east')
    await untilUsable()
  })

  it('one keeps the machine of a unit that its row places on the other one, until the row is right', async () => {
    const made = running['east']
    if (!made) throw new Error('no unit')
    const place = async (name: string) =>
      await withDatabase(await berth.instance(), async (db) => {
        const changed = { host_id: far.idOf(name) }
        await db.updateTable('units').set(changed).where('id', '=', made.unit.id).execute()
      })
    await place('west')
    await eventually(async () => expect(await asideOn('east')).toContain(made.unit.id), 60_000)
    await afterRounds()
    await expectDisks()
    await place('east')
    // Another start of the engine asks again for what is wanted.
    await far.byName('east').powerOff()
    await untilAway('east', /does not answer/)
    await far.byName('east').host.reopen()
    await far.untilReady('east')
    await eventually(async () => expect((await read(made)).state).toBe('sleeping'), 60_000)
    await untilUsable()
    await expectDisks()
  })

  it('a database that was restored takes no machine and no disk from either', async () => {
    const [postgres, copy] = ['postgres', 'postgres.older'].map((name) => join(berth.dataDir, name)) as [
      string,
      string,
    ]
    expect(await berth.pressCtrlC()).toBe(0)
    await runOrThrow('cp', ['--archive', postgres, copy], { timeoutMs: 60_000 })
    await berth.start(settings)
    for (const name of names) await far.untilReady(name)
    const newer = { east: await createWithLetter('east'), west: await createWithLetter('west') }
    disks = await Promise.all(names.map(disksOn))
    expect(await berth.pressCtrlC()).toBe(0)
    await rm(postgres, { recursive: true })
    await rename(copy, postgres)
    await berth.start(settings)
    for (const name of names)
      await eventually(async () => {
        const row = await far.rowOf(name)
        if (/ away .*reclaim/.test(await far.command('list'))) await far.command('reclaim', name)
        expect(row).toMatch(/^\S+ +ready /)
      }, 60_000)
    for (const name of names)
      await eventually(async () => expect(await asideOn(name)).toContain(newer[name].unit.id), 60_000)
    await afterRounds()
    await expectDisks()
    await untilUsable()
  })
})
