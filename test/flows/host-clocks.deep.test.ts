// Bills of runs on two hosts whose clocks are six seconds apart, and three from the server's, against a stopwatch: runs that
// are ended by a call and by themselves, and while the host is away, which comes back in the same boot or in another one.

import { beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../src/lib/free-port.ts'
import { SECOND } from '../../src/lib/clock.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { eventually } from '../support/berth.ts'
import { useFarHosts } from '../support/far-hosts.ts'
import { withDatabase } from '../support/host-invariants.ts'
import { callAs, type Owner } from '../support/unit-calls.ts'
import { useBerth } from '../support/use-berth.ts'

const WITHIN_MS = 400
/** A host is away after fifteen seconds. */
const AWAY_MS = 22 * SECOND
/** Runs that are found ended are billed to the heartbeat before, one every five seconds. */
const HEARTBEAT_MS = 10 * SECOND

const settings = { BERTH_HOSTS_ADDRESS: '', BERTH_ISOLATION: 'runc' }
beforeAll(async () => {
  settings.BERTH_HOSTS_ADDRESS = `0.0.0.0:${await freePort('0.0.0.0')}`
})
const berth = useBerth(() => settings)
const far = useFarHosts(berth, () => settings, [
  { name: 'east', index: 30, aheadMs: 3 * SECOND },
  { name: 'west', index: 31, aheadMs: -3 * SECOND },
])

type Made = { owner: Owner; unit: Unit }
type Seen = { began: number; ended: number; unsureMs: number }

const stateOf = async ({ owner, unit }: Made) =>
  (await callAs<Unit>(owner, 'GET', `/v1/units/${unit.id}`)).body.state

/** The engine is asked directly, so that it can be watched while the server cannot reach it. */
async function untilMachineIs(
  name: string,
  { unit }: Made,
  state: string,
): Promise<{ after: number; by: number }> {
  let after = Date.now()
  for (;;) {
    const asked = Date.now()
    const found = (await far.byName(name).host.engine().list()).find(({ id }) => id === unit.id)
    if (found?.state === state) return { after, by: Date.now() }
    after = asked
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

async function billedRuns({
  unit,
}: Made): Promise<{ began: number; billedTo: number; ended: number | null }[]> {
  const meters = await withDatabase(await berth.instance(), async (db) => {
    const ofUnit = db.selectFrom('meters').selectAll().where('unit_id', '=', unit.id)
    return await ofUnit.where('kind', '=', 'compute').orderBy('id').execute()
  })
  return meters.map(({ started_at, billed_to, ended_at }) => ({
    began: started_at.getTime(),
    billedTo: billed_to.getTime(),
    ended: ended_at?.getTime() ?? null,
  }))
}

/** A unit's run as the stopwatch has it: from when it was created. */
async function createTimed(name: string, cmd: string[]): Promise<Made & { began: number }> {
  const made = await far.createOn(name, { cmd })
  const [run] = await billedRuns(made)
  if (!run) throw new Error('it has no meter')
  return { ...made, began: run.began }
}

async function expectBilled(made: Made, { ended, unsureMs }: Seen): Promise<void> {
  await eventually(async () => expect((await billedRuns(made))[0]?.ended).not.toBeNull(), 60_000)
  const [run, ...others] = await billedRuns(made)
  expect(others).toEqual([])
  const offMs = (run?.ended ?? 0) - ended
  expect(Math.abs(offMs)).toBeLessThanOrEqual(WITHIN_MS + unsureMs)
  expect(run?.billedTo).toBe(run?.ended)
}

describe.each(['east', 'west'])('a run on the host %s', (name) => {
  const wire = async (state: 'up' | 'down') => await far.byName(name).wire.set(state)
  const untilAway = async () =>
    await eventually(async () => expect(await far.rowOf(name)).toMatch(/^\S+ +away /), 30_000)
  const sleeping = (ms: number) => ['sh', '-c', `sleep ${ms / SECOND}`]

  it('is billed until a call ended it', async () => {
    const made = await createTimed(name, ['sleep', 'infinity'])
    const began = Date.now()
    await new Promise((resolve) => setTimeout(resolve, 3 * SECOND))
    const exited = untilMachineIs(name, made, 'exited')
    expect((await callAs(made.owner, 'POST', `/v1/units/${made.unit.id}/stop`)).status).toBe(200)
    await expectBilled(made, middle(began, await exited))
  })

  it('is billed until it ended by itself', async () => {
    const made = await createTimed(name, sleeping(4 * SECOND))
    await expectBilled(made, middle(made.began, await untilMachineIs(name, made, 'exited')))
  })

  it('is billed until it ended by itself while the host was away', async () => {
    const made = await createTimed(name, sleeping(8 * SECOND))
    await wire('down')
    const ended = await untilMachineIs(name, made, 'exited')
    await untilAway()
    await wire('up')
    await far.untilReady(name)
    await expectBilled(made, middle(made.began, ended))
  })

  it('goes on when the host was away, is billed no further meanwhile, and then as a whole', async () => {
    const made = await createTimed(name, ['sleep', 'infinity'])
    const cutAt = Date.now()
    await wire('down')
    await untilAway()
    const [meanwhile] = await billedRuns(made)
    expect(meanwhile?.billedTo).toBeLessThanOrEqual(cutAt + WITHIN_MS)
    expect(await stateOf(made)).toBe('running')
    await wire('up')
    await far.untilReady(name)
    const exited = untilMachineIs(name, made, 'exited')
    expect((await callAs(made.owner, 'POST', `/v1/units/${made.unit.id}/stop`)).status).toBe(200)
    await expectBilled(made, middle(made.began, await exited))
  })

  it('is billed no longer than it ran when its host loses power', async () => {
    const made = await createTimed(name, ['sleep', 'infinity'])
    await new Promise((resolve) => setTimeout(resolve, AWAY_MS / 2))
    await far.byName(name).powerOff()
    const off = Date.now()
    await untilAway()
    await far.byName(name).host.reopen()
    await far.untilReady(name)
    await eventually(async () => expect(await stateOf(made)).toBe('sleeping'), 60_000)
    const [run] = await billedRuns(made)
    expect(run?.ended).toBeLessThanOrEqual(off + WITHIN_MS)
    expect(run?.ended).toBeGreaterThan(off - HEARTBEAT_MS)
    expect((await callAs(made.owner, 'DELETE', `/v1/units/${made.unit.id}`)).status).toBe(200)
  })
})

function middle(began: number, { after, by }: { after: number; by: number }): Seen {
  return { began, ended: (after + by) / 2, unsureMs: (by - after) / 2 }
}
