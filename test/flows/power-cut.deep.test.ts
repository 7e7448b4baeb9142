// A host loses its power (reliability F9): all processes die at once and kernel state is gone. The next start must find
// units as their users left them, behind a firewall, without cost for the outage.

import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { processesIn, listCgroups, openCgroups } from '../../src/engine/oci/kernel/cgroups.ts'
import { namesOf } from '../../src/engine/oci/network/names.ts'
import { run } from '../../src/lib/process.ts'
import { eventually } from '../support/berth.ts'
import { createUnit, exec } from '../support/berth-units.ts'
import { expectInvariants, withDatabase } from '../support/host-invariants.ts'
import { cutPower } from '../support/power-cut.ts'
import { useBerth } from '../support/use-berth.ts'

/** Longer than any cost that a clock error could cause. */
const DARK_MS = 12_000

const berth = useBerth(null)
const units = new Map<string, Unit>()
const addresses = new Map<string, string | null>()
let costBefore: Map<string, number>
let cutAt: number
let sightings: { machines: number; isGuarded: boolean }[]

const unit = (name: string): Unit => {
  const found = units.get(name)
  if (!found) throw new Error(`there is no unit ${name}`)
  return found
}
const get = async (name: string) => (await berth.call<Unit>('GET', `/v1/units/${unit(name).id}`)).body
const act = async (name: string, action: string, body?: unknown) => {
  const answer = await berth.call(`POST`, `/v1/units/${unit(name).id}/${action}`, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
}

/** What a unit may reach, before and after. */
const restricted = { egress: { mode: 'listed', allow: ['a.example.com'], siblings: 'stack' } }

/** A unit that is still being stopped when the power goes. */
const deaf = { cmd: ['sh', '-c', 'trap "" TERM; while :; do sleep 1000 & wait; done'] }

async function make(name: string, rest: Record<string, unknown> = {}): Promise<void> {
  const image = 'berth.local/debian:12'
  const spec = { name, image, size: 'nano', volume: { mount: '/data', gb: 1 }, ...rest }
  units.set(name, await createUnit(berth, spec, 'stack'))
  const script = `echo root of ${name} > /root/mark; echo volume of ${name} > /data/mark`
  expect((await exec(berth, unit(name), ['sh', '-c', script])).exitCode).toBe(0)
}

beforeAll(async () => {
  await berth.start({ BERTH_ISOLATION: 'gvisor', BERTH_FROZEN_FOR: '0s' })
  await Promise.all([make('gvisor-running', restricted), make('gvisor-cold')])
  await act('gvisor-cold', 'sleep', { sleep: '30m', now: true })
  await berth.start({ BERTH_ISOLATION: 'runc', BERTH_FROZEN_FOR: 'never' })
  await Promise.all([make('busy', deaf), make('running', restricted), make('stopped'), make('frozen')])
  await act('stopped', 'stop')
  await act('frozen', 'sleep', { sleep: '30m', now: true })
  await expectInvariants(berth)
  for (const [name, address] of await addressesByName()) addresses.set(name, address)
  costBefore = new Map(
    await Promise.all(
      [...units.keys()].map(async (name) => [name, (await get(name)).costCentsSoFar] as const),
    ),
  )

  const stopping = act('busy', 'stop').catch(() => {})
  await eventually(async () => expect((await get('busy')).state).toBe('stopping'))
  cutAt = Date.now()
  await cutPower(berth)
  await stopping
  await delay(DARK_MS)
  const watching = watchHost()
  await berth.start({ BERTH_ISOLATION: 'runc' })
  await act('running', 'start')
  sightings = await watching.stop()
})

async function addressesByName(): Promise<[string, string | null][]> {
  const rows = await withDatabase(await berth.instance(), (db) =>
    db.selectFrom('units').select(['name', 'address']).execute(),
  )
  return rows.map(({ name, address }) => [name, address])
}

/** Polls whether machines are running and whether the firewall tables exist. */
function watchHost(): { stop(): Promise<typeof sightings> } {
  let stopped = false
  const seen: typeof sightings = []
  const watching = (async () => {
    const instance = JSON.parse(await readFile(`${berth.dataDir}/instance.json`, 'utf8'))
    const { table } = namesOf(instance)
    const cgroups = openCgroups(instance.id)
    // The last poll starts after the end of the wait, because on a slow host only that one may see a machine.
    for (let isLast = false; !isLast; ) {
      isLast = stopped
      // Check machines before tables: a table created between the two checks would hide a fault.
      const groups = listCgroups(cgroups).filter((name) => name.startsWith('unit_'))
      const machines = groups.filter((name) => processesIn(cgroups, name).length > 0).length
      const families = await Promise.all(
        ['inet', 'netdev'].map((family) =>
          run('nft', ['list', 'table', family, table], { timeoutMs: 10_000 }),
        ),
      )
      seen.push({ machines, isGuarded: families.every(({ exitCode }) => exitCode === 0) })
    }
  })()
  return {
    stop: async () => {
      stopped = true
      await watching
      return seen
    },
  }
}

describe('after a power loss', () => {
  it('no machine runs before the firewall rules exist', () => {
    expect(sightings.filter(({ isGuarded }) => !isGuarded).length).toBeGreaterThan(0)
    expect(sightings.filter(({ machines }) => machines > 0).length).toBeGreaterThan(0)
    expect(sightings.filter(({ machines, isGuarded }) => machines > 0 && !isGuarded)).toEqual([])
  })

  it('running units sleep until they are called, stopped units are stopped, sleeping units sleep', async () => {
    const found = await Promise.all([...units.keys()].map(get))
    expect(
      Object.fromEntries(found.map(({ name, state, stoppedReason }) => [name, `${state} ${stoppedReason}`])),
    ).toEqual({
      'gvisor-running': 'sleeping provider',
      'gvisor-cold': 'sleeping idle',
      running: 'running null',
      busy: 'stopped user',
      stopped: 'stopped user',
      frozen: 'sleeping idle',
    })
    await expectInvariants(berth)
  })

  it('compute is not billed for the time without power', async () => {
    const ran = ['gvisor-running', 'busy']
    const rows = await withDatabase(await berth.instance(), (db) =>
      db
        .selectFrom('meters')
        .innerJoin('units', 'units.id', 'meters.unit_id')
        .select(['units.name', 'meters.ended_at'])
        .where('units.name', 'in', ran)
        // A volume is billed without power too (decisions/money.md).
        .where('meters.kind', '=', 'compute')
        .execute(),
    )
    expect(rows.map(({ name }) => name).toSorted()).toEqual(ran.toSorted())
    for (const { ended_at: endedAt } of rows) expect(endedAt?.getTime()).toBeLessThanOrEqual(cutAt + 1000)
    for (const name of ran) {
      // The limit is the price of the outage at a quarter of a cent an hour, less than any size costs.
      const added = (await get(name)).costCentsSoFar - (costBefore.get(name) ?? 0)
      expect(added).toBeLessThan((0.25 * DARK_MS) / 3_600_000)
    }
  })

  it('every unit has its old address and its files on the root and volume', async () => {
    expect(new Map(await addressesByName())).toEqual(addresses)
    expect(new Set(addresses.values()).size).toBe(units.size)
    for (const name of units.keys()) {
      await act(name, 'start')
      const { stdout } = await exec(berth, unit(name), ['cat', '/root/mark', '/data/mark'])
      expect(stdout).toBe(`root of ${name}\nvolume of ${name}\n`)
    }
    await expectInvariants(berth)
  })

  it.each(['running', 'gvisor-running'])('the rules of the unit %s hold', async (name) => {
    const script = `exec 3<>/dev/tcp/203.0.113.10/80; printf 'GET / HTTP/1.1\\r\\nHost: b.example.com\\r\\n\\r\\n' >&3; cat <&3`
    const ask = async () => (await exec(berth, unit(name), ['timeout', '5', 'bash', '-c', script])).stdout
    await eventually(async () =>
      expect(await ask()).toMatch(/403 Forbidden[^]*egress_refused[^]*b\.example\.com/),
    )
  })
})
