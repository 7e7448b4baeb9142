// Hosted agents in the server, with the whole product: sessions of a control plane of ours work in real units, which sleep and wake
// while the server is killed. Prints what it measures (docs/performance.md).

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Process } from '../../src/contract/process.ts'
import { createUnit, exec, listUnits } from '../support/berth-units.ts'
import {
  addEnvironment,
  AGENT_IMAGE as IMAGE,
  type HostedTeam,
  processorTimeOf,
  signInToHosted,
} from '../support/hosted-team.ts'
import { restartRole } from '../support/kill.ts'
import { type ManagedAgents, startManagedAgents } from '../support/managed-agents.ts'
import { useBerth } from '../support/use-berth.ts'

const SESSIONS = 50
/** Each takes a minute: so long does the vendor's library wait for more before it ends a turn. */
const ROUNDS = 3

const berth = useBerth(null)
let agents: ManagedAgents
let team: HostedTeam

type Session = ReturnType<ManagedAgents['begin']>
const bash = (command: string) => ({ name: 'bash', input: { command } })
const say = async (session: Session, command: string) => await agents.call(session, bash(command))

beforeAll(async () => {
  agents = await startManagedAgents()
})
afterAll(async () => {
  await agents.close()
  expect(agents.faults).toEqual([])
})

const tell = (figures: object) => void process.stdout.write(`hosted agents ${JSON.stringify(figures)}\n`)

function median(samples: number[]): number {
  return samples.toSorted((a, b) => a - b)[Math.floor(samples.length / 2)] ?? Number.NaN
}

/** From when the vendor gave the work until it has the answer. */
async function sinceClaim(session: Session, command: string): Promise<number> {
  const item = agents.items.findLast((each) => each.session === session.id)
  expect((await say(session, command)).isError).toBe(false)
  return Date.now() - (item?.leasedAt ?? Number.NaN)
}

async function endTurn(session: Session): Promise<void> {
  const item = agents.items.findLast((each) => each.session === session.id)
  agents.endTurn(session)
  await expect.poll(() => item?.state, { interval: 20, timeout: 90_000 }).toBe('stopped')
}

describe.each(['runc', 'gvisor'])('with %s', (isolation) => {
  let id: string

  beforeAll(async () => {
    await berth.start({
      BERTH_ISOLATION: isolation,
      BERTH_CLAUDE_URL: agents.url,
      BERTH_READY_MACHINES: '0',
      BERTH_RATE_REQUESTS: '1000000',
      BERTH_RATE_CREATIONS: '1000000',
      BERTH_RATE_EXECS: '1000000',
    })
    team = await signInToHosted(berth)
    id = await addEnvironment(team, agents, SESSIONS)
  })
  afterAll(async () => {
    await team.ask('DELETE', `/v1/hosted-agents/${id}`)
    expect(await listUnits(berth)).toEqual([])
    expect(await berth.pressCtrlC()).toBe(0)
  })

  it('the first tool call comes soon after a create, and the next turn soon after a wake', async () => {
    const creates: number[] = []
    const firsts: number[] = []
    const turns: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const began = performance.now()
      const spec = { name: `own-${round}`, image: IMAGE, size: 'nano', egress: { mode: 'none' } }
      const unit = await createUnit(berth, spec)
      await exec(berth, unit, ['bash', '-c', 'echo x'])
      creates.push(performance.now() - began)
      await berth.call('DELETE', `/v1/units/${unit.id}`)

      const session = agents.begin()
      firsts.push(await sinceClaim(session, 'echo x'))
      await endTurn(session)
      const [made] = await listUnits(berth)
      await berth.call('POST', `/v1/units/${made?.id}/sleep`, { sleep: '1m', now: true })
      await expect.poll(async () => await team.stateOf(made?.id ?? '')).toBe('sleeping')
      agents.queue(session)
      turns.push(await sinceClaim(session, 'echo x'))
      agents.terminate(session)
      await expect.poll(async () => await listUnits(berth), { timeout: 60_000 }).toEqual([])
    }
    const figures = { isolation, create: median(creates), first: median(firsts), turn: median(turns) }
    tell({ ...figures, ratio: figures.first / figures.create })
  }, 1_500_000)

  it('fifty sessions at once each have one unit, and every call runs once, also when the server is killed', async () => {
    const sessions = Array.from({ length: SESSIONS }, () => agents.begin())
    const ids = new Set(sessions.map((session) => session.id))
    const began = performance.now()
    const work = sessions.map(async (session, index) => {
      for (const round of [1, 2, 3]) {
        const told = await say(session, `echo ${round} >>/var/tmp/ran; sleep 1; wc -l </var/tmp/ran`)
        expect({ ...told, text: told.text.trim(), index }).toEqual({
          text: `${round}`,
          isError: false,
          index,
        })
      }
    })
    // At the first claims, in the middle of creates, and in the middle of commands.
    for (const reached of [1, 10, 40]) {
      await expect
        .poll(() => agents.items.filter((each) => ids.has(each.session) && each.ackedAt !== null).length, {
          // What was leased and not accepted is given again two minutes after a kill.
          timeout: 300_000,
        })
        .toBeGreaterThanOrEqual(reached)
      await restartRole(berth, 'server')
    }
    await Promise.all(work)
    tell({ isolation, sessions: SESSIONS, ms: performance.now() - began })
    const units = await listUnits(berth)
    expect(units).toHaveLength(SESSIONS)
    expect(new Set((await team.sessionsOf(id)).map(({ unit }) => unit?.id)).size).toBeGreaterThanOrEqual(
      SESSIONS,
    )
    for (const session of sessions) agents.terminate(session)
    await expect.poll(async () => await listUnits(berth), { timeout: 300_000 }).toEqual([])
  }, 1_500_000)

  it('a command keeps its unit awake, and a held confirmation costs neither processor time nor money', async () => {
    const [busy, held] = [agents.begin(), agents.begin()]
    await say(held, 'echo begun >/var/tmp/kept')
    const heldId = (await team.sessionsOf(id)).find((each) => each.id === held.id)?.unit?.id ?? ''
    const confirmed = agents.call(held, { ...bash('cat /var/tmp/kept'), ask: true })
    const answered = say(busy, 'sleep 105; echo done')
    await expect
      .poll(async () => await team.stateOf(heldId), { timeout: 150_000, interval: 500 })
      .toBe('sleeping')
    const spent = async () => [(await team.unitOf(heldId)).costCentsSoFar, await processorTimeOf(heldId)]
    const before = await spent()
    expect(before[0]).toBeGreaterThan(0)
    expect((await answered).text).toBe('done')
    expect([await spent(), await team.stateOf(heldId)]).toEqual([before, 'sleeping'])
    agents.confirm(held)
    expect((await confirmed).text).toBe('begun')
    for (const session of [busy, held]) agents.terminate(session)
    await expect.poll(async () => await listUnits(berth), { timeout: 60_000 }).toEqual([])
    const costs = (await team.sessionsOf(id)).map(({ costCents }) => costCents)
    expect(Math.min(...costs.slice(0, 2))).toBeGreaterThan(0)
  })

  it('a lease keeps a unit awake as long as it is renewed, and the unit sleeps soon after its last', async () => {
    const unit = await createUnit(berth, { name: 'leased', image: IMAGE, size: 'nano', sleep: '1m' })
    const { body } = await berth.call<Process>('POST', `/v1/units/${unit.id}/processes`, {
      cmd: ['sleep', '600'],
    })
    for (let second = 0; second < 100; second += 10) {
      await berth.call('POST', `/v1/units/${unit.id}/processes/${body.id}/keep-awake`, { forMs: 30_000 })
      await new Promise((resolve) => setTimeout(resolve, 10_000))
    }
    expect(await team.stateOf(unit.id)).toBe('running')
    await expect
      .poll(async () => await team.stateOf(unit.id), { timeout: 180_000, interval: 1000 })
      .toBe('sleeping')
    await berth.call('DELETE', `/v1/units/${unit.id}`)
  })
})
