// Of two hosts that have joined, one is killed, cut off, stands still, loses its power, or is given up: what its units say, that
// the other one's are used as before, what is billed, and what is there when it is back (decisions/hosts.md).

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { SECOND } from '../../src/lib/clock.ts'
import { freePort } from '../../src/lib/free-port.ts'
import { eventually } from '../support/berth.ts'
import type { Exec } from '../support/berth-units.ts'
import { withDatabase } from '../support/host-invariants.ts'
import { createUnitOn, drainOwnHost, hosts, joinAs, useMachine } from '../support/host-lab.ts'
import { namesOnHost, processesOf } from '../support/host-state.ts'
import { killSupervisor } from '../support/kill.ts'
import { cutPower, hang } from '../support/power-cut.ts'
import { callAs, type OwnedUnit } from '../support/unit-calls.ts'
import { useBerth } from '../support/use-berth.ts'

const AWAY_WITHIN_MS = 15 * SECOND
/** By how much a few of many calls differ on two processors that do other things besides. */
const NOISE_MS = 300
const CALLS = 150

const settings = { BERTH_HOSTS_ADDRESS: '', BERTH_ISOLATION: 'runc' }
beforeAll(async () => {
  settings.BERTH_HOSTS_ADDRESS = `0.0.0.0:${await freePort('0.0.0.0')}`
})
const berth = useBerth(() => settings)
const east = useMachine('east', 38, { BERTH_ISOLATION: 'runc', BERTH_DOMAIN: 'east.berth.localhost' })
const west = useMachine('west', 39, { BERTH_ISOLATION: 'runc', BERTH_DOMAIN: 'west.berth.localhost' })

const command = async (...args: string[]) => await hosts(berth, settings, ...args)
const rowOf = async (name: string) =>
  (await command('list')).split('\n').find((row) => row.startsWith(`${name} `)) ?? ''
const untilReady = async (name: string) =>
  await eventually(async () => expect(await rowOf(name)).toMatch(/^\S+ +ready /), 60_000)

const at = ({ unit }: OwnedUnit) => `/v1/units/${unit.id}`
const read = async (made: OwnedUnit) => (await callAs<Unit>(made.owner, 'GET', at(made))).body
const call = async (made: OwnedUnit, cmd: string[]) =>
  await callAs<Exec>(made.owner, 'POST', `${at(made)}/exec`, { cmd })
async function run(made: OwnedUnit, cmd: string[]): Promise<string> {
  const { status, body } = await call(made, cmd)
  expect(status, JSON.stringify(body)).toBe(200)
  return body.stdout
}

/** When its run began, as its kernel has it. */
const began = async (made: OwnedUnit) => (await run(made, ['cat', '/proc/1/stat'])).split(' ')[21]

/** Of calls for a unit one after another, until there are enough; none fails. */
async function timesOf(made: OwnedUnit, isEnough: (count: number) => boolean): Promise<number[]> {
  const times: number[] = []
  while (!isEnough(times.length)) {
    const sentMs = performance.now()
    await run(made, ['true'])
    times.push(performance.now() - sentMs)
  }
  return times
}

function p99(times: number[]): number {
  return times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? 0
}

/** Until a unit of it says so. Returns the answer. */
async function untilAway(made: OwnedUnit): Promise<{ retryAfter: string | null; since: string }> {
  return await eventually(async () => {
    const { baseUrl } = berth.credentials
    const response = await fetch(`${baseUrl}${at(made)}/exec`, {
      method: 'POST',
      headers: { authorization: `Bearer ${made.owner.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ cmd: ['true'] }),
    })
    const body = (await response.json()) as { error?: { details?: Record<string, string> } }
    expect({ status: response.status, body }).toMatchObject({
      status: 503,
      body: { error: { details: { reason: 'host_away', since: expect.any(String) } } },
    })
    const since = body.error?.details?.['since'] ?? ''
    return { retryAfter: response.headers.get('retry-after'), since }
  }, 40_000)
}

async function runsOf({ unit }: OwnedUnit) {
  const meters = await withDatabase(await berth.instance(), async (db) => {
    const ofUnit = db.selectFrom('meters').selectAll().where('unit_id', '=', unit.id)
    return await ofUnit.where('kind', '=', 'compute').orderBy('id').execute()
  })
  return meters.map(({ billed_to, ended_at }) => ({
    billedTo: billed_to.getTime(),
    ended: ended_at?.getTime() ?? null,
  }))
}

/** Those that hold a machine of the unit on its host. */
async function monitorsOf({ unit }: OwnedUnit): Promise<string[]> {
  const all = await processesOf(namesOnHost(await east.berth.instance(), east.berth.dataDir))
  return all.map((each) => each.command).filter((each) => each.startsWith('conmon') && each.includes(unit.id))
}

/** Each returns what ends it. */
const troubles: [string, () => Promise<() => unknown>][] = [
  [
    'is killed',
    async () => {
      await killSupervisor(east.berth)
      return async () => await east.berth.start(east.settings)
    },
  ],
  [
    'is cut off',
    async () => {
      await east.setWire('down')
      return async () => await east.setWire('up')
    },
  ],
  ['stands still', async () => await hang(east.berth)],
]

describe('a host that has joined', () => {
  let here: OwnedUnit
  let other: OwnedUnit
  const letter = ['cat', '/root/letter']

  beforeAll(async () => {
    for (const machine of [east, west]) await joinAs(berth, settings, machine)
    for (const { name } of [east, west]) await untilReady(name)
    await drainOwnHost(berth, settings)
    here = await createUnitOn({ berth, command, name: 'east' })
    other = await createUnitOn({ berth, command, name: 'west' })
    await run(here, ['sh', '-c', 'echo kept > /root/letter; echo mark > /dev/shm/mark; sync'])
  })

  it.each(troubles)(
    'and %s is away within 15 s, its units say since when, others are used as before, and its machines are adopted',
    async (_what, begin) => {
      const first = await began(here)
      const before = p99(await timesOf(other, (count) => count >= CALLS))
      const beginsAt = Date.now()
      const end = await begin()
      let isAway = false
      const others = timesOf(other, (count) => isAway && count >= CALLS)
      const { retryAfter, since } = await untilAway(here).finally(() => (isAway = true))
      const awayAt = Date.now()
      expect(awayAt - beginsAt).toBeLessThan(AWAY_WITHIN_MS)
      expect(Number(retryAfter)).toBeGreaterThan(0)
      expect(Math.abs(Date.parse(since) - beginsAt)).toBeLessThan(5 * SECOND)
      const during = p99(await others)
      expect(during).toBeLessThan(before + NOISE_MS)
      expect(await read(here)).toMatchObject({ state: 'running' })
      expect((await runsOf(here)).map(({ ended }) => ended)).toEqual([null])
      await end()
      await untilReady('east')
      expect(await began(here)).toBe(first)
      expect(await run(here, ['cat', '/dev/shm/mark'])).toBe('mark\n')
      expect(await monitorsOf(here)).toHaveLength(1)
      expect(await runsOf(here)).toHaveLength(1)
    },
  )

  it('and loses its power has its units asleep when it is back, with their disks', async () => {
    await cutPower(east.berth)
    await untilAway(here)
    await east.berth.start(east.settings)
    await untilReady('east')
    await eventually(
      async () => expect(await read(here)).toMatchObject({ state: 'sleeping', stoppedReason: 'provider' }),
      30_000,
    )
    expect(await run(here, letter)).toBe('kept\n')
    expect((await call(here, ['cat', '/dev/shm/mark'])).body.exitCode).toBe(1)
    expect(await monitorsOf(here)).toHaveLength(1)
  })

  it('and was given up while it was cut off is refused when it is back, bills nothing, and keeps its disks', async () => {
    await east.setWire('down')
    const cutAt = Date.now()
    await untilAway(here)
    await eventually(async () => await command('lost', 'east'), 10_000)
    await eventually(
      async () => expect(await read(here)).toMatchObject({ state: 'sleeping', stoppedReason: 'provider' }),
      20_000,
    )
    const billed = await runsOf(here)
    for (const { ended } of billed) expect(ended).toBeLessThanOrEqual(cutAt)
    await east.setWire('up')
    // It asks again and again.
    await eventually(async () => {
      const log = await readFile(join(berth.dataDir, 'logs', 'berth.log'), 'utf8')
      expect(log).toMatch(/"host":"east".*"its host is not one of this service, or is no more"/)
    }, 60_000)
    const { status, body } = await call(here, letter)
    expect({ status, body }).toMatchObject({ body: { error: { details: { reason: 'host_lost' } } } })
    expect(await rowOf('east')).toMatch(/^east +lost /)
    expect(await read(here)).toMatchObject({ state: 'sleeping', stoppedReason: 'provider' })
    expect(await runsOf(here)).toEqual(billed)
    expect(await readdir(join(east.berth.dataDir, 'pool', 'disks'))).toContain(here.unit.id)
  })

  it('and joins again after it was given up has the disks of its units, and no run of before', async () => {
    await joinAs(berth, settings, east)
    await untilReady('east')
    expect(await run(here, letter)).toBe('kept\n')
    expect((await call(here, ['cat', '/dev/shm/mark'])).body.exitCode).toBe(1)
    expect(await monitorsOf(here)).toHaveLength(1)
    for (const made of [here, other]) expect((await callAs(made.owner, 'DELETE', at(made))).status).toBe(200)
  })
})
