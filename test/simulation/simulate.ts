// Runs one schedule: its steps, and then a time without faults, after which everything must be as the reference says,
// every call answered, and every unit able to sleep, wake and be destroyed.

import { sizeNanoCentsPerHour, volumeNanoCentsPerGbHour } from '../../src/domain/billing/prices.ts'
import type { Caller } from '../../src/domain/credentials/caller.ts'
import type { FakeEngine } from '../support/fake-engine/fake-engine.ts'
import { HOUR, MINUTE, SECOND } from '../../src/lib/clock.ts'
import { verifyLedgerOfTeam } from '../../src/store/verify-ledger.ts'
import type { UnitRecord } from '../../src/store/unit-record.ts'
import { listNewestUnits } from '../../src/store/unit-lists.ts'
import { findUnsettled } from '../support/invariants.ts'
import type { Bench } from './bench.ts'
import { paths, type Wish } from './calls.ts'
import type { Gate } from './gates.ts'
import { isHostAway, judgeHosts, machinesEverywhere } from './hosts.ts'
import type { Schedule, Step } from './steps.ts'
import { bringAbout, endAllTrouble } from './troubles.ts'
import { createWorld, isReady, type World } from './world.ts'

export type Result = {
  /** The faults that were found; empty when there were none. */
  faults: string[]
  /** How many steps were taken until then. */
  stepsTaken: number
  /** What happened, for a person to read; and everything, to compare. */
  history: string[]
  trace: string[]
}

class Fault extends Error {}

/** `spoil` breaks the engine, to see whether that is found. */
export async function simulate(
  bench: Bench,
  { steps, ...about }: Schedule,
  spoil: (engine: FakeEngine) => void = () => {},
): Promise<Result> {
  const world = await createWorld(bench, about)
  spoil(world.fake)
  let stepsTaken = 0
  try {
    await world.startServer()
    await world.stillness()
    await openAll(world)
    for (const step of steps) {
      stepsTaken += 1
      await take(world, step, about.isCalm)
    }
    await comeToRest(world)
    await fallAsleep(world)
    await comeBack(world)
    await end(world)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
  } finally {
    await world.end()
  }
  const { history, trace, reference } = world
  return { faults: reference.faults.map(world.label), stepsTaken, history, trace }
}

async function take(world: World, { act, gates }: Step, isCalm: boolean): Promise<void> {
  if ('wish' in act) {
    // A caller that finds the server down tries again in a moment.
    if (!world.app()) await passTime(world, SECOND, SECOND)
    world.call(callerOf(world, act.by, act.wish), act.wish)
  } else if ('passMs' in act) {
    world.note(`${act.passMs / SECOND} s pass`)
    await passTime(world, act.passMs, HOP_MS)
  } else if (!isCalm || act.trouble === 'a process ends' || 'host' in act) {
    const { trouble, ...details } = act
    world.note(`! ${[trouble, ...Object.values(details)].join(' ')}`)
    await bringAbout(world, act)
  }
  await world.stillness()
  check(world)
  for (let opened = 0; opened < gates; opened++) if (!(await openOne(world))) break
}

function callerOf({ bench, reference, ownerOf }: World, by: number, wish: Wish): Caller {
  const ours = by % 2 === 0 ? bench.callers[0] : bench.callers[1]
  const owner = 'unit' in wish ? ownerOf(reference.unitAt(wish.unit)?.id ?? '') : bench.neighbors[by - 2]
  return owner && owner !== bench.roomy ? owner : ours
}

/** Opens one of the gates that can be opened. Returns false when there is none. */
async function openOne(world: World): Promise<boolean> {
  const { gates, clock, random, trace } = world
  const gate = chooseGate(
    world,
    gates.closed().filter((each) => !each.isSlow && isReady(world, each)),
  )
  if (!gate) return false
  trace.push(world.label(`${clock.elapsedMs()} ${gate.life.name}: ${gate.what}`))
  gate.open()
  clock.advance(random.below(3))
  await world.stillness()
  check(world)
  return true
}

/** At times a gate is unlucky, and many others are opened first. */
const UNLUCKY_PROBABILITY = 1 / 15
const MAX_PATIENCE = 80

function chooseGate({ random }: World, ready: Gate[]): Gate | null {
  for (const gate of ready)
    gate.patience ??= random.chance(UNLUCKY_PROBABILITY) ? random.below(MAX_PATIENCE) : 0
  const lucky = ready.filter(({ patience }) => patience === 0)
  for (const gate of ready) gate.patience = Math.max(0, (gate.patience ?? 0) - 1)
  const [first, ...rest] = lucky.length > 0 ? lucky : ready
  return first ? random.pick([first, ...rest]) : null
}

/** More than this without an advance of the clock is an endless loop. */
const MAX_GATES = 3000

async function openAll(world: World): Promise<void> {
  for (let opened = 0; await openOne(world); opened++) {
    if (opened > MAX_GATES) refuse(world, 'the service never rests')
  }
}

/** Less than a third of the shortest window, so that a unit in use is recorded in time. */
const HOP_MS = 18 * SECOND

/** Passes time in hops, in each of which everything due happens; slow answers come at some time. */
async function passTime(world: World, ms: number, hopMs: number): Promise<void> {
  const { clock, gates, random } = world
  // As often as hosts are asked, so that a host is found away, and taken back.
  if (isHostAway(world)) hopMs = Math.min(hopMs, 4 * SECOND)
  const endMs = clock.elapsedMs() + ms
  while (clock.elapsedMs() < endMs) {
    const leftMs = endMs - clock.elapsedMs()
    clock.advance(Math.min(leftMs, 1 + random.below(hopMs)))
    for (const gate of gates.closed()) if (gate.isSlow) gate.isSlow = random.chance(0.7)
    await openAll(world)
  }
}

/** Longer than any wait for something that failed. */
const REST_MS = 5 * MINUTE

/** Faults end: every call is answered, and the engine is as the database says. */
async function comeToRest(world: World): Promise<void> {
  const { clock, reference } = world
  endAllTrouble(world)
  const endMs = clock.elapsedMs() + REST_MS
  for (;;) {
    await passTime(world, 10 * SECOND, 5 * SECOND)
    const unsettled = await unsettledIn(world)
    unsettled.push(...hostsAway(world))
    const calls = reference.unanswered().map(({ number, what }) => `call ${number} (${what}) is not answered`)
    if (world.app() && unsettled.length + calls.length === 0) return
    if (clock.elapsedMs() > endMs) refuse(world, ...unsettled, ...calls)
  }
}

function hostsAway(world: World): string[] {
  const there = world.hosts.filter(({ isLost }) => !isLost)
  const isAway = ({ id }: { id: string }) => (world.app()?.fleet.find(id)?.awaySince ?? null) !== null
  return there.filter(isAway).map(({ name }) => `the host ${name} is away`)
}

async function unsettledIn({ hosts, reference, database, clock }: World): Promise<string[]> {
  const engine = { machines: () => machinesEverywhere(hosts, reference.units()) }
  return await findUnsettled({ db: database.direct }, engine, { isClockSet: clock.hasJumped() })
}

/** Longer than every window, and than the time in which a server that was down puts no unit to sleep. */
const SLEEP_MS = 4 * MINUTE

async function fallAsleep(world: World): Promise<void> {
  const { reference } = world
  await passTime(world, SLEEP_MS, MINUTE)
  for (const { id, state, sleep } of reference.units()) {
    if (state === 'running' && sleep !== 'never') reference.faults.push(`${id}: nobody uses it, and it runs`)
  }
  check(world)
}

/** Every unit wakes by a call or a start, and has the files that were written to it. */
async function comeBack(world: World): Promise<void> {
  const { reference } = world
  const lost = new Set(world.hosts.filter(({ isLost }) => isLost).map(({ id }) => id))
  for (const { id, hostId, state, isSick } of reference.units()) {
    if (isSick || lost.has(hostId)) continue
    if (state === 'stopped') await mustAnswer(world, { call: 'start', unit: 0 }, id)
    if (!['running', 'stopped', 'sleeping'].includes(state)) continue
    await mustAnswer(world, { call: 'exec', unit: 0, forS: 0 }, id)
    for (const path of paths.filter((each) => reference.file(id, each).isThere())) {
      await mustAnswer(world, { call: 'read', unit: 0, path }, id)
    }
  }
}

/** Destroys everything. Each unit has cost what it ran, by its own record and by the ledger. */
async function end(world: World): Promise<void> {
  const { reference, hosts, database, clock, bench } = world
  if (reference.units().some(({ state }) => state === 'error')) await passTime(world, HOUR, HOUR)
  for (const { id } of reference.units()) await mustAnswer(world, { call: 'destroy', unit: 0 }, id)
  const unsettled = await unsettledIn(world)
  const left = machinesEverywhere(hosts, reference.units()).map(
    ({ id }) => `${id}: it is destroyed, and its machine is there`,
  )
  if (unsettled.length + left.length > 0) refuse(world, ...unsettled, ...left)
  const charged = new Map(reference.units().map((unit) => [unit.id, unit.charged]))
  for (const { id, size, spec, costNanoCents } of await listCosts(world)) {
    if (costNanoCents !== charged.get(id)) {
      reference.faults.push(`${id}: costs ${costNanoCents}, and is charged ${charged.get(id)}`)
    }
    // After a clock jump, the time between the two ends of a unit is unknown.
    if (spec.volume && clock.hasJumped()) continue
    const forVolume = BigInt(reference.keptMs(id) * (spec.volume?.gb ?? 0)) * volumeNanoCentsPerGbHour
    const forRuns = BigInt(reference.ranMs(id)) * sizeNanoCentsPerHour[size]
    const owed = forRuns / BigInt(HOUR) + forVolume / BigInt(HOUR)
    if (owed !== costNanoCents) reference.faults.push(`${id}: costs ${costNanoCents}, and should ${owed}`)
  }
  for (const { teamId } of [bench.roomy, ...bench.neighbors]) {
    const differences = await verifyLedgerOfTeam(database.direct, teamId)
    for (const { what, of } of differences) reference.faults.push(`${of}: the ${what} does not add up`)
  }
  check(world)
}

async function listCosts({ database, bench, clock }: World): Promise<UnitRecord[]> {
  const units: UnitRecord[] = []
  for (const { teamId } of [bench.roomy, ...bench.neighbors]) {
    const filter = { teamId, destroyedToo: true, limit: 500, now: clock.now() }
    units.push(...(await listNewestUnits(database.direct, filter)))
  }
  return units
}

async function mustAnswer(world: World, wish: Wish, id: string): Promise<void> {
  const call = world.call(world.ownerOf(id), wish, id)
  if (!call) return refuse(world, 'nobody answers')
  const endMs = world.clock.elapsedMs() + MINUTE
  await world.stillness()
  await openAll(world)
  while (!call.outcome && world.clock.elapsedMs() < endMs) await passTime(world, SECOND, SECOND)
  if (!call.outcome?.ok) refuse(world, `call ${call.number} (${call.what}) must be answered, and is not`)
}

function refuse(world: World, ...faults: string[]): never {
  world.reference.faults.push(...faults)
  throw new Fault()
}

function check({ reference, hosts }: World): void {
  reference.faults.push(...judgeHosts(hosts, reference.units()))
  if (reference.faults.length > 0) throw new Fault()
}
