// Sleep, wake, stop, start and sudden death keep every byte (reliability F10). After six cycles of each (two in `npm test`)
// the file trees of a unit on its root and volume, synced or not, are unchanged.

import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { eventually } from '../support/berth.ts'
import { expectInvariants } from '../support/host-invariants.ts'
import { killRole, killSupervisor, type Role } from '../support/kill.ts'
import { partOf } from '../support/part-of.ts'
import { callPatiently, type Reply } from '../support/patient-client.ts'
import { cutPower } from '../support/power-cut.ts'
import { createUnitWithTrees, growTrees, hashTrees } from '../support/trees.ts'
import { useBerth } from '../support/use-berth.ts'

const CYCLES = partOf([1, 2, 3, 4, 5, 6], 2)

const berth = useBerth(null)
let seed = 0
/** One unit of each class, used for most tests. */
const units: Unit[] = []
/** One unit of each class that is left idle until its sleep window has passed. */
const idle: Unit[] = []
/** One unit of each class whose first process ignores SIGTERM. */
const stubborn: Unit[] = []
let idleHashes: string[]

beforeAll(async () => {
  for (const isolation of ['gvisor', 'runc']) {
    await berth.start({ BERTH_ISOLATION: isolation, BERTH_FROZEN_FOR: 'never' })
    units.push(await createUnitWithTrees(berth, isolation))
    idle.push(await createUnitWithTrees(berth, `${isolation}-idle`, { sleep: '1m' }))
    const cmd = ['sh', '-c', 'trap "" TERM; while :; do sleep 1000 & wait; done']
    stubborn.push(await createUnitWithTrees(berth, `${isolation}-stubborn`, { cmd }))
  }
  idleHashes = await grow(idle)
})

/** In gVisor, pipes and sockets exist only in memory, so they do not survive the run. */
async function grow(those: Unit[]): Promise<string[]> {
  seed += 1
  const grown = those.map((unit) => growTrees(berth, unit, { seed, pipes: unit.name.startsWith('runc') }))
  return await Promise.all(grown)
}

const hashes = (those: Unit[]) => Promise.all(those.map((unit) => hashTrees(berth, unit)))

/** Grows the trees, runs `happens`, and checks that the trees are unchanged. */
async function expectKept(those: Unit[], happens: () => Promise<unknown>): Promise<void> {
  const before = await grow(those)
  await happens()
  expect(await hashes(those)).toEqual(before)
}

const act = (unit: Unit, action: string, body?: unknown): Promise<Reply<Unit>> =>
  callPatiently(berth, { method: 'POST', path: `/v1/units/${unit.id}/${action}`, body })

async function sleepAll(those: Unit[]): Promise<void> {
  const calls = those.map((unit) => act(unit, 'sleep', { sleep: '30m', now: true }))
  for (const { status } of await Promise.all(calls)) expect(status).toBe(200)
  await expectStates(those, 'sleeping')
}

async function all(those: Unit[], action: 'stop' | 'start'): Promise<void> {
  for (const { status } of await Promise.all(those.map((unit) => act(unit, action)))) expect(status).toBe(200)
}

const get = async ({ id }: Unit): Promise<Unit> =>
  (await callPatiently<Unit>(berth, { method: 'GET', path: `/v1/units/${id}` })).body

async function expectStates(those: Unit[], state: Unit['state']): Promise<void> {
  const found = await Promise.all(those.map(get))
  expect(found.map((unit) => unit.state)).toEqual(those.map(() => state))
}

/** Kills processes of Berth in the middle of the work. */
async function under(kills: Role[], work: () => Promise<unknown>, cycle: number): Promise<void> {
  const killing = async () => {
    await delay(cycle * 4)
    for (const role of kills) await killRole(berth, role)
  }
  await Promise.all([work(), killing()])
}

/** In six cycles each process dies during falling asleep and during waking, alone and with the other. */
const killsOf: Record<number, { asleep: Role[]; awake: Role[] }> = {
  1: { asleep: ['engine'], awake: [] },
  2: { asleep: ['server'], awake: [] },
  3: { asleep: [], awake: ['engine'] },
  4: { asleep: [], awake: ['server'] },
  5: { asleep: ['engine', 'server'], awake: [] },
  6: { asleep: [], awake: ['server', 'engine'] },
}

describe.each([
  { tier: 'frozen', frozenFor: 'never' },
  { tier: 'cold', frozenFor: '0s' },
])('$tier sleep keeps every byte', ({ frozenFor }) => {
  beforeAll(async () => {
    if (frozenFor === 'never') return
    await killSupervisor(berth)
    await berth.start({ BERTH_ISOLATION: 'runc', BERTH_FROZEN_FOR: frozenFor })
  })

  it('over several cycles', async () => {
    for (const _cycle of CYCLES) await expectKept(units, () => sleepAll(units))
    await expectInvariants(berth)
  })

  it.each(CYCLES)('while Berth’s processes are killed, cycle %i', async (cycle) => {
    const { asleep = [], awake = [] } = killsOf[cycle] ?? {}
    await expectKept(units, async () => {
      await under(asleep, () => sleepAll(units), cycle)
      await under(awake, () => all(units, 'start'), cycle)
    })
    await expectInvariants(berth)
  })
})

describe('every byte is kept', () => {
  it('over several stops and starts', async () => {
    for (const _cycle of CYCLES) {
      await expectKept(units, async () => {
        await all(units, 'stop')
        await all(units, 'start')
      })
    }
    await expectInvariants(berth)
  })

  it('when the first process has to be killed to stop', async () => {
    await expectKept(stubborn, async () => {
      await all(stubborn, 'stop')
      await all(stubborn, 'start')
    })
  })

  it('when a unit falls asleep because it is idle', async () => {
    await eventually(() => expectStates(idle, 'sleeping'), 90_000)
    const found = await Promise.all(idle.map(get))
    for (const { stoppedReason } of found) expect(stoppedReason).toBe('idle')
    expect(await hashes(idle)).toEqual(idleHashes)
  })

  it.each(CYCLES)('over a power loss of the host, cycle %i', async () => {
    await expectKept(units, async () => {
      await cutPower(berth)
      await berth.start({ BERTH_ISOLATION: 'runc', BERTH_FROZEN_FOR: 'never' })
    })
    await expectInvariants(berth)
  })
})
