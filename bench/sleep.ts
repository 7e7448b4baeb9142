// What sleep costs (issue of design 9): a call that wakes its unit beside the same call to a running one, in
// both tiers; the processor time of units that sleep; and how soon many that are due are asleep.

import { setTimeout as delay } from 'node:timers/promises'
import type { Call } from './berth.ts'
import { hibernateOf, wakeOf } from './checkpoints.ts'
import { type Figures, timed } from './figures.ts'
import { FILLED_MS, holdingMemory, memories } from './forks.ts'
import { cpuSecondsOf } from './service.ts'

const IMAGE = 'berth.local/debian:12'
const IDLE_UNITS = 100
const IDLE_SECONDS = 60
const DUE_UNITS = 500
const AT_ONCE = 10

/** `tier` is what the Berth was started for (BERTH_FROZEN_FOR): a cold one stops what falls asleep at once. */
export async function measureWakes(call: Call, tier: 'frozen' | 'cold', rounds: number): Promise<Figures> {
  // A whole processor: with less, commands wait for their share of it, and that would be what is measured.
  const id = await createUnit(call, { name: 'bench', stack: 'bench', size: 'medium' })
  const exec = () => call('POST', `/v1/units/${id}/exec`, { cmd: ['true'] })
  const start = () => call('POST', `/v1/units/${id}/start`)
  const sleep = () => call('POST', `/v1/units/${id}/sleep`, { sleep: '30m', now: true })
  const figures = {
    'exec, running': [] as number[],
    [`exec, ${tier}`]: [] as number[],
    'start, running': [] as number[],
    [`start, ${tier}`]: [] as number[],
    [`fall asleep, ${tier}`]: [] as number[],
  }
  const kinds = { exec, start }
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, action] of Object.entries(kinds)) {
      // In turns, so that both are asked under the same conditions.
      await timed(figures[`${name}, running`] ?? [], action)
      await timed(figures[`fall asleep, ${tier}`] ?? [], sleep)
      await timed(figures[`${name}, ${tier}`] ?? [], action)
    }
  }
  await call('DELETE', `/v1/units/${id}`)
  return figures
}

/** A unit with memory that is stopped, until its memory is kept, and started again. For a Berth without the frozen tier. */
export async function measureHibernation(call: Call, rounds: number): Promise<Figures> {
  const figures: Figures = {}
  for (const { megabytes } of memories) {
    const [stops, wakes] = [[], []] as number[][]
    Object.assign(figures, { [hibernateOf(megabytes)]: stops, [wakeOf(megabytes)]: wakes })
    const cmd = holdingMemory(megabytes)
    const id = await createUnit(call, { name: 'bench', stack: 'bench', size: 'medium', cmd })
    await delay(FILLED_MS)
    for (let round = 0; round < rounds; round += 1) {
      await timed(stops ?? [], async () => {
        await call('POST', `/v1/units/${id}/sleep`, { sleep: '30m', now: true })
        while (!(await keptMemory(call, id))) await delay(5)
      })
      await timed(wakes ?? [], () => call('POST', `/v1/units/${id}/start`))
    }
    await call('DELETE', `/v1/units/${id}`)
  }
  return figures
}

/** Null as long as it is being saved. */
async function keptMemory(call: Call, id: string): Promise<boolean> {
  const { memory } = (await call('GET', `/v1/units/${id}`)) as { memory: { kept: boolean | null } }
  if (memory.kept === false) throw new Error('the memory of a unit was not kept')
  return memory.kept === true
}

/** Share of one core that the service and its units use, with none and with many asleep. */
export async function measureIdleCost(call: Call, supervisor: number): Promise<string> {
  const empty = await coreShare(supervisor)
  const ids = await createMany(call, IDLE_UNITS, 'idle')
  await call('POST', `/v1/units/${ids[0]}/sleep`, { sleep: '30m', stack: true, now: true })
  await delay(5000)
  const asleep = await coreShare(supervisor)
  await destroyMany(call, ids)
  const percent = (share: number) => `${(100 * share).toFixed(2)} %`
  return `${percent(empty)} of a core without units, ${percent(asleep)} with ${IDLE_UNITS} frozen ones`
}

/** Milliseconds from the moment that many units are due until the last of them sleeps. */
export async function measureDue(call: Call): Promise<string> {
  const ids = await createMany(call, DUE_UNITS, 'due')
  // The shortest window is a minute: it has to have passed for all before it is set.
  await delay(61_000)
  const started = performance.now()
  await call('POST', `/v1/units/${ids[0]}/sleep`, { sleep: '1m', stack: true })
  const asleep = async () => {
    const { units } = (await call('GET', '/v1/units?stack=due&limit=500')) as { units: { state: string }[] }
    return units.filter(({ state }) => state === 'sleeping').length
  }
  while ((await asleep()) < DUE_UNITS) await delay(20)
  const tookMs = performance.now() - started
  await destroyMany(call, ids)
  return `${DUE_UNITS} due at once are asleep after ${Math.round(tookMs)} ms`
}

async function coreShare(supervisor: number): Promise<number> {
  const before = cpuSecondsOf(supervisor)
  await delay(IDLE_SECONDS * 1000)
  return (cpuSecondsOf(supervisor) - before) / IDLE_SECONDS
}

async function createUnit(
  call: Call,
  {
    name,
    stack,
    size,
    cmd = ['sleep', 'infinity'],
  }: { name: string; stack: string; size: string; cmd?: string[] },
): Promise<string> {
  const spec = { name, image: IMAGE, cmd, size }
  const { units } = (await call('POST', '/v1/units', { spec, stack })) as { units: { id: string }[] }
  return units[0]?.id ?? ''
}

async function createMany(call: Call, count: number, stack: string): Promise<string[]> {
  const ids: string[] = []
  while (ids.length < count) {
    const group = Array.from({ length: Math.min(AT_ONCE, count - ids.length) }, (_, index) =>
      createUnit(call, { name: `unit-${ids.length + index}`, stack, size: 'nano' }),
    )
    ids.push(...(await Promise.all(group)))
  }
  return ids
}

async function destroyMany(call: Call, ids: string[]): Promise<void> {
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    await Promise.all(ids.slice(from, from + AT_ONCE).map((id) => call('DELETE', `/v1/units/${id}`)))
  }
}
