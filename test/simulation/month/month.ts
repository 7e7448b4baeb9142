// A month of money: units of several teams are created, sleep, wake, stop, fork and are destroyed by two servers on
// one real Postgres, while servers, engine and host die, commits lose their answers, the clock is set, prices change,
// and caps and credits run out. In the end everything that states a cost must equal the reference (account.ts), to
// the nano-cent.

import type { Size } from '../../../src/contract/policy.ts'
import { chargeMeters } from '../../../src/domain/billing/charge.ts'
import { sizeNanoCentsPerHour } from '../../../src/domain/billing/prices.ts'
import { verifyLedger } from '../../../src/domain/billing/verify-ledger.ts'
import type { Caller } from '../../../src/domain/credentials/caller.ts'
import { grantCredits } from '../../../src/domain/credits/grant.ts'
import { resumeForks } from '../../../src/domain/forks/run.ts'
import { adoptClockJump } from '../../../src/domain/time/clock-jumps.ts'
import { destroyErroredUnits, destroyUnit } from '../../../src/domain/units/destroy.ts'
import { hibernateFrozenUnits, sleepIdleUnits } from '../../../src/domain/units/activity/idle.ts'
import { enforceLimits } from '../../../src/domain/units/admission/stop-beyond-limits.ts'
import { reconcileMachines, resumeOperations } from '../../../src/domain/units/reconcile.ts'
import type { App } from '../../../src/app.ts'
import { DAY, MINUTE, SECOND } from '../../../src/lib/clock.ts'
import { addKey, makeCaller } from '../../support/domain.ts'
import { createRandom, type Random } from '../random.ts'
import { create, drawAct } from './acts.ts'
import { audit, compareShown } from './audit.ts'
import { bringTrouble, endTroubles } from './troubles.ts'
import { createWorld, type Work, type World } from './world.ts'

export type MonthOptions = {
  seed: number
  units: number
  days: number
  /** How often calls are made, and how many at once. */
  stepsPerDay: number
  actsPerStep: number
  /** The clock is set at times. */
  withJumps: boolean
  socketDir?: string
  say: (line: string) => void
}

export type Month = { faults: string[]; figures: Record<string, number | string> }

const rounds: Record<string, (app: App) => Promise<void>> = {
  reconcileMachines,
  resumeOperations,
  resumeForks,
  sleepIdleUnits,
  hibernateFrozenUnits,
  destroyErroredUnits,
  enforceLimits,
}
/** The operations of the engine that fail while it is down. */
const operations = [
  'capacity',
  'pull',
  'create',
  'start',
  'stop',
  'suspend',
  'fork',
  'freeze',
  'thaw',
  'destroy',
  'list',
  'exec',
  'recover',
  'watchExits',
] as const
/** Further faults show nothing new. */
const MAX_FAULTS = 20

export async function simulateMonth(options: MonthOptions): Promise<Month> {
  const { seed, days, stepsPerDay, withJumps, say } = options
  const world = await createWorld(options.socketDir)
  const random = createRandom(seed)
  const known = { ...sizeNanoCentsPerHour }
  world.account.price(known)
  try {
    const callers = await makeCallers(world)
    for (const server of world.servers) world.kill(server)
    await world.restart()
    let asked = 0
    for (let step = 1; step <= days * stepsPerDay && world.faults.length < MAX_FAULTS; step++) {
      await world.passTo(world.clock.elapsedMs() + 1 + random.below((2 * DAY) / stepsPerDay))
      await runRounds(world, random)
      await changeMoney(world, random, callers)
      // What is lost from here on was certain only until now.
      await world.passTo(world.clock.elapsedMs() + random.below(5 * SECOND))
      bringTrouble(world, random, { withJumps })
      asked += await act(world, random, callers, { ...options, asked })
      if (random.chance(0.3)) await chargeTwice(world)
      endTroubles(world)
      await world.restart()
      await followClock(world)
      await bringOutage(world, random)
      if (step % stepsPerDay !== 0) continue
      await compareNow(world, callers)
      const made = world.account.units()
      const alive = made.filter(({ state }) => state !== 'destroyed').length
      say(
        `day ${step / stepsPerDay}: ${made.length} units made, ${alive} alive, ${world.faults.length} faults`,
      )
    }
    await destroyAll(world, callers)
    await compareNow(world, callers)
    const figures = await audit(world, { withJumps })
    return { faults: world.faults, figures: { ...figures, ...Object.fromEntries(world.counts) } }
  } finally {
    Object.assign(sizeNanoCentsPerHour, known)
    await world.close()
  }
}

/** Makes six teams with three keys each. Two teams have credits only, and one key of each team has a cap. */
async function makeCallers({ servers, pool }: World): Promise<Caller[]> {
  const [server] = servers
  if (!server) throw new Error('there is no server')
  const { app } = server
  const callers: Caller[] = []
  for (let team = 0; team < 6; team++) {
    const first = await makeCaller(app, { maxConcurrentUnits: 1_000, dailySpendCapCents: 1_000_000 }, 'team')
    const second = await addKey(app, first, { maxConcurrentUnits: 40, dailySpendCapCents: 1_000_000 })
    const third = await addKey(app, first, { maxConcurrentUnits: 1_000, dailySpendCapCents: 60 })
    for (const caller of [first, second, third])
      caller.policy.allowedSizes = ['nano', 'small', 'medium', 'large']
    callers.push(first, second, third)
    if (team < 2) await pool.query('update teams set pays_as_it_goes = false where id = $1', [first.teamId])
  }
  await pool.query(
    `update credentials set policy = policy || '{"allowedSizes": ["nano", "small", "medium", "large"]}'`,
  )
  return callers
}

/** Lets both servers follow a clock that was set. */
async function followClock(world: World): Promise<void> {
  for (const server of world.servers)
    await world.settle([{ server, what: 'followWallClock', work: () => adoptClockJump(server.app) }])
}

/** Runs the jobs one after the other, each on a server that is drawn. */
async function runRounds(world: World, random: Random): Promise<void> {
  for (const [what, round] of Object.entries(rounds)) {
    const server = world.servers[random.below(world.servers.length)]
    if (server) await world.settle([{ server, what, work: () => round(server.app) }])
  }
}

/** Runs two charges at once. */
async function chargeTwice(world: World): Promise<void> {
  await world.settle(
    world.servers.flatMap((server) => [
      { server, what: 'chargeMeters', work: () => chargeMeters(server.app) },
      { server, what: 'verifyLedger', work: () => verifyLedger(server.app) },
    ]),
  )
}

/** Makes the changes of an operator. */
async function changeMoney(world: World, random: Random, callers: Caller[]): Promise<void> {
  const [server] = world.servers
  if (!server) return
  if (random.chance(1 / 40)) {
    const { teamId } = callers[random.below(6)] ?? { teamId: '' }
    world.count('credits granted')
    const credit = {
      teamId,
      cents: 200 + random.below(800),
      note: 'for the simulation',
      at: server.app.clock.now(),
    }
    await world.settle([{ server, what: 'credits', work: () => grantCredits(server.app.db, credit) }])
  }
  if (random.chance(1 / 300)) {
    const prices: Record<Size, bigint> = sizeNanoCentsPerHour
    // Odd prices, so that rounding errors show.
    for (const size of Object.keys(prices) as Size[])
      prices[size] = BigInt(100_000_001 + random.below(2_000_000_000))
    world.account.price(prices)
    world.count('prices changed')
  }
}

/** Makes calls, and returns how many. */
async function act(
  world: World,
  random: Random,
  callers: Caller[],
  { units, days, actsPerStep, asked }: MonthOptions & { asked: number },
): Promise<number> {
  const drawServer = () => world.servers[random.below(world.servers.length)]
  const standing = world.account.units().filter(({ state }) => state !== 'destroyed' && state !== 'error')
  const total = world.account.units().length
  // Most units are created early, so that they have a month to live.
  const dueByNow = Math.min(units, Math.ceil((3 * units * (world.clock.elapsedMs() + DAY)) / (days * DAY)))
  const works: Work[] = []
  for (let index = 0; index < actsPerStep; index++) {
    const server = drawServer()
    if (!server) continue
    if (total + index < dueByNow && random.chance(0.6)) {
      const caller = callers[random.below(callers.length)]
      const number = asked + works.length
      if (caller)
        works.push({ server, what: 'create', work: () => create(server.app, caller, random, number) })
      continue
    }
    const unit = standing[random.below(standing.length)]
    const own = callers.filter(({ teamId }) => teamId === unit?.teamId)
    const caller = own[random.below(own.length)]
    const work = unit && drawAct(random, unit, { mayFork: total + index < units })
    if (work && caller)
      works.push({ server, what: `a call to what is ${unit.state}`, work: () => work(server.app, caller) })
  }
  for (const { what } of works) world.count(what)
  await world.settle(works)
  return works.length
}

/** The engine or the whole host is down for hours, and some machines are lost meanwhile. */
async function bringOutage(world: World, random: Random): Promise<void> {
  const isOfHost = random.chance(1 / 400)
  if (!isOfHost && !random.chance(1 / 400)) return
  const { engine, account, clock } = world
  const awayMs = 30 * MINUTE + random.below(6 * 60) * MINUTE
  world.count(isOfHost ? 'host away' : 'engine away')
  if (isOfHost) for (const server of world.servers) world.kill(server)
  await world.settle([])
  engine.crash()
  for (const operation of operations)
    engine.fail(operation, 'engine_away', { times: Number.MAX_SAFE_INTEGER })
  await world.settle([])
  for (const { id, state } of engine.machines()) {
    if (state !== 'running' || (!isOfHost && random.chance(0.7))) continue
    account.ended(id, 'lost')
    engine.loseMachine(id)
  }
  if (isOfHost) clock.reboot()
  else
    for (let round = 0; round < 3; round++) {
      await world.passTo(clock.elapsedMs() + awayMs / 3)
      await runRounds(world, random)
      await chargeTwice(world)
    }
  if (isOfHost) await world.passTo(clock.elapsedMs() + awayMs)
  for (const operation of operations) engine.heal(operation)
  await world.restart()
  await world.passTo(clock.elapsedMs() + 20 * SECOND)
  await runRounds(world, random)
}

async function destroyAll(world: World, callers: Caller[]): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await world.passTo(world.clock.elapsedMs() + 2 * MINUTE)
    for (const server of world.servers)
      await world.settle([{ server, what: 'reconcileMachines', work: () => reconcileMachines(server.app) }])
    const [server] = world.servers
    const left = world.account.units().filter(({ state }) => state !== 'destroyed')
    if (!server) return
    await world.settle(
      left.flatMap(({ id, teamId }) => {
        const caller = callers.find((each) => each.teamId === teamId)
        return caller ? [{ server, what: 'destroy', work: () => destroyUnit(server.app, caller, id) }] : []
      }),
    )
  }
}

async function compareNow(world: World, callers: Caller[]): Promise<void> {
  // A heartbeat of a complete server makes all costs until then certain.
  await world.passTo(world.clock.elapsedMs() + 20 * SECOND)
  const [server] = world.servers
  if (!server) return
  await world.settle([{ server, what: 'reconcileMachines', work: () => reconcileMachines(server.app) }])
  const teams = [...new Set(callers.map(({ teamId }) => teamId))]
  await compareShown(world, server.app, teams)
}
