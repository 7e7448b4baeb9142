// A person takes an hour to decide about an agent's call, by the real clock: the session's unit sleeps, its processes use no
// processor time, and nothing is charged for it. Then the call runs on the same disk. Both classes wait at the same time.

import { setTimeout as delay } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type IsolationClass, isolationClasses } from '../../src/engine/engine.ts'
import { HOUR, MINUTE } from '../../src/lib/clock.ts'
import type { Database } from '../../src/store/db.ts'
import type { Berth } from '../support/berth.ts'
import { listUnits } from '../support/berth-units.ts'
import { withDatabase } from '../support/host-invariants.ts'
import { addEnvironment, processorTimeOf, signInToHosted, ticksOf } from '../support/hosted-team.ts'
import { type ManagedAgents, startManagedAgents } from '../support/managed-agents.ts'
import { useBerth } from '../support/use-berth.ts'

const bash = (command: string) => ({ name: 'bash', input: { command } })

type Waiting = { isolation: IsolationClass; agents: () => ManagedAgents; berth: Berth }

function use(isolation: IsolationClass): Waiting {
  let agents: ManagedAgents
  beforeAll(async () => {
    agents = await startManagedAgents()
  })
  afterAll(async () => {
    await agents.close()
    expect(agents.faults).toEqual([])
  })
  const berth = useBerth(() => ({ BERTH_ISOLATION: isolation, BERTH_CLAUDE_URL: agents.url }))
  return { isolation, agents: () => agents, berth }
}

it.concurrent.for(isolationClasses.map(use))(
  'a call in a unit of class $isolation waits an hour for a person, costs nothing meanwhile, and then runs',
  { timeout: 2 * HOUR },
  async ({ isolation, agents: agentsOf, berth }, { expect }) => {
    const agents = agentsOf()
    const team = await signInToHosted(berth)
    const id = await addEnvironment(team, agents, 2)
    const session = agents.begin()
    await agents.call(session, bash('echo begun >/var/tmp/kept'))
    const unitId = (await team.sessionsOf(id))[0]?.unit?.id ?? ''
    const confirmed = agents.call(session, { ...bash('cat /var/tmp/kept'), ask: true })
    await expect
      .poll(async () => await team.stateOf(unitId), { timeout: 3 * MINUTE, interval: 500 })
      .toBe('sleeping')

    const instance = await berth.instance()
    const charges = async (db: Kysely<Database>) =>
      await db.selectFrom('charges').selectAll().where('unit_id', '=', unitId).orderBy('from_ms').execute()
    const bill = async () => ({
      state: await team.stateOf(unitId),
      cents: (await team.unitOf(unitId)).costCentsSoFar,
      ofSession: (await team.sessionsOf(id))[0]?.costCents,
      charges: await withDatabase(instance, charges),
    })
    const server = (await berth.pidOf('server')) ?? 0
    const before = await bill()
    const ticks = await processorTimeOf(unitId)
    const [serverTicks, polls] = [await ticksOf(server), agents.polls]
    expect([before.charges.length > 0, before.cents > 0, ticks > 0]).toEqual([true, true, true])
    for (let minute = 1; minute <= HOUR / MINUTE; minute++) {
      await delay(MINUTE)
      expect(await bill(), `after ${minute} minutes`).toEqual(before)
      // One that has slept for ten minutes is stopped, and has no processes then.
      await expect.poll(async () => [ticks, 0].includes(await processorTimeOf(unitId))).toBe(true)
    }
    const unit = { ticks, after: await processorTimeOf(unitId) }
    const ofServer = { ticks: (await ticksOf(server)) - serverTicks, polls: agents.polls - polls }
    process.stdout.write(`held for an hour ${JSON.stringify({ isolation, unit, ofServer })}\n`)

    agents.confirm(session)
    expect((await confirmed).text.trim()).toBe('begun')
    expect((await listUnits(berth)).map((unit) => unit.id)).toEqual([unitId])
    expect((await bill()).state).toBe('running')
    agents.terminate(session)
    await expect.poll(async () => await listUnits(berth), { timeout: MINUTE }).toEqual([])
    await team.ask('DELETE', `/v1/hosted-agents/${id}`)
  },
)
