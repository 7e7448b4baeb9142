// The whole server in a world that the simulator controls: real rules on a real Postgres, the in-memory engine, and
// no time, answer or crash except by the simulator.

import { pino } from 'pino'
import { type App, createApp } from '../../src/app.ts'
import { loadConfig } from '../../src/config.ts'
import type { Caller } from '../../src/domain/credentials/caller.ts'
import { recover } from '../../src/domain/units/reconcile.ts'
import { createFleet } from '../../src/engine/fleet.ts'
import { createFakeEngine, type FakeEngine } from '../support/fake-engine/fake-engine.ts'
import { SecretKey } from '../../src/lib/crypto.ts'
import { unobserved } from '../../src/lib/observer.ts'
import { noFailpoints } from '../../src/lib/failpoints.ts'
import { startJobs } from '../../src/jobs.ts'
import type { Bench } from './bench.ts'
import {
  type Call,
  describeError,
  describeOutcome,
  describeWish,
  isUse,
  make,
  type Outcome,
  type Wish,
} from './calls.ts'
import { createSimulatedClock, type SimulatedClock } from './clock.ts'
import { createSimulatedDatabase, type SimulatedDatabase } from './database.ts'
import { createSimulatedEngine, type SimulatedEngine } from './engine.ts'
import { createGates, createLife, type Gate, type Gates, type Life } from './gates.ts'
import { createRandom, type Random } from './random.ts'
import { createReference, type Reference } from './reference.ts'
import { readUnits, standingOf } from './seen.ts'
import { createFarHosts, FAR_HOSTS, isTroubled, newDirectory, type SimulatedHost } from './hosts.ts'
import type { Schedule } from './steps.ts'
import { createPublicFetch } from '../../src/lib/public-fetch.ts'

export type World = {
  random: Random
  clock: SimulatedClock
  gates: Gates
  fake: FakeEngine
  engine: SimulatedEngine
  /** The server's own host, whose engine that is, and those of other machines. */
  hosts: SimulatedHost[]
  farHosts: SimulatedHost[]
  database: SimulatedDatabase
  reference: Reference
  bench: Bench
  /** What happened, for a person to read. */
  history: string[]
  /** Everything that happened, to compare. */
  trace: string[]
  note: (what: string) => void
  /** Replaces ids by short labels, the same in each run. */
  label: (text: string) => string
  /** The server, once it is ready. */
  app: () => App | null
  startServer: () => Promise<void>
  killServer: () => Promise<void>
  /** A key of the unit's team with room for all units. */
  ownerOf: (unitId: string) => Caller
  /** Runs the work once this time has passed and the simulator opens its gate. */
  later: (ms: number, what: string, work: () => Promise<void> | void) => void
  /** Returns null when the server is down or there is no unit. */
  call: (caller: Caller, wish: Wish, unitId?: string) => Call | null
  /** Resolves when everything waits at a gate. */
  stillness: () => Promise<void>
  end: () => Promise<void>
}

const secretKey = new SecretKey(Buffer.alloc(32, 7))
const RESTART_MS = 500

export async function createWorld(
  bench: Bench,
  { seed, isCalm, hasHosts, isDrained = false }: Omit<Schedule, 'steps'>,
): Promise<World> {
  const random = createRandom(seed)
  const gates = createGates()
  const clock = createSimulatedClock(gates)
  const host = createLife('host')
  const fake = createFakeEngine({ clock: clock.for(host) })
  const history: string[] = []
  const trace: string[] = []
  const labels = new Map<string, string>()
  const label = (text: string) =>
    text.replace(/(unit|stack|fork|cred|host)_[0-9a-f]{32}/g, (id, kind: string) => {
      const ofKind = [...labels.values()].filter((other) => other.startsWith(kind)).length
      const own = labels.get(id) ?? `${kind}${ofKind}`
      labels.set(id, own)
      return own
    })
  const note = (what: string) => {
    const line = `${(clock.elapsedMs() / 1000).toFixed(3).padStart(9)} s  ${label(what)}`
    history.push(line)
    trace.push(line)
  }

  const database = createSimulatedDatabase(bench.client, gates, observe)
  const engine = createSimulatedEngine(fake, gates, random, note)
  const farHosts = hasHosts ? createFarHosts({ clock, gates, random, note }) : []
  const reference = createReference({
    nowMs: () => clock.now().getTime(),
    elapsedMs: () => clock.elapsedMs(),
    hasJumped: () => clock.hasJumped(),
    maxConcurrentUnits: new Map(
      bench.callers.map(({ credentialId, policy }) => [credentialId, policy.maxConcurrentUnits]),
    ),
    atWorkIn: (id) => hosts.reduce((sum, each) => sum + each.engine.atWorkIn(id), 0),
    isCalm: (hostId) => isCalm && !isTroubled(world, hostId),
  })
  const local = {
    ...bench.host,
    engine,
    ...newDirectory(fake),
    isSilent: false,
    isLost: false,
    troubledUntilMs: 0,
  }
  const hosts: SimulatedHost[] = [local, ...farHosts]
  const standings = new Map<string, string>()
  let life: Life | null = null
  let app: App | null = null
  let lives = 0
  let calls = 0

  async function observe(): Promise<void> {
    const units = await readUnits(database)
    for (const unit of units) {
      const standing = standingOf(unit)
      if (standings.get(unit.id) !== standing) note(`${unit.id} is ${standing}`)
      standings.set(unit.id, standing)
    }
    reference.seen(units)
  }

  const log = pino(
    { level: isCalm && !hasHosts ? 'error' : 'silent' },
    {
      write: (line: string) => void reference.faults.push(`logged an error: ${line.slice(0, 2000)}`),
    },
  )

  async function startServer(): Promise<void> {
    lives += 1
    const mine = createLife(`server ${lives}`)
    life = mine
    note(`${mine.name} begins`)
    const started = createApp({
      config: loadConfig({ BERTH_FROZEN_FOR: '2m' }),
      db: database.for(mine),
      fleet: createFleet({ ...bench.host, engine: engine.for(mine) }, ({ name }) => {
        const host = farHosts.find((each) => each.name === name)
        if (!host) throw new Error(`there is no host ${name}`)
        return host.engine.farFor(mine)
      }),
      clock: clock.for(mine),
      log,
      secretKey,
      failpoints: noFailpoints,
      deliverMail: async () => {},
      observer: unobserved,
      payments: null,
      fetchPublic: createPublicFetch(),
    })
    recover(started).then(
      () => {
        note(`${mine.name} is ready`)
        startJobs(started)
        app = started
      },
      (error: unknown) => {
        note(`${mine.name} cannot begin: ${describeError(error)}`)
        later(RESTART_MS, 'the supervisor goes on', async () => {
          if (life === mine) await killServer()
        })
      },
    )
  }

  async function killServer(): Promise<void> {
    if (!life) return
    note(`${life.name} dies`)
    const dead = life
    life = null
    app = null
    dead.end.abort(new Error('its process died'))
    for (const each of hosts) each.engine.cut(dead)
    for (const gate of gates.closed()) if (gate.life === dead) gates.forget(gate)
    await database.cut(dead)
    for (const call of reference.unanswered()) if (call.life === dead) reference.cutOff(call)
    later(RESTART_MS, 'the supervisor starts the server', startServer)
  }

  function later(ms: number, what: string, work: () => Promise<void> | void): void {
    void gates.pass(host, 'world', what, { dueMs: clock.elapsedMs() + ms }).then(work)
  }

  function call(caller: Caller, wish: Wish, id?: string): Call | null {
    if (!app || !life) return null
    const unitId = id ?? ('unit' in wish ? reference.unitAt(wish.unit)?.id : null)
    if (unitId === undefined) return null
    calls += 1
    const path = 'path' in wish ? wish.path : ''
    const made: Call = {
      number: calls,
      what: wish.call,
      unitId,
      life,
      askedMs: clock.now().getTime(),
      beganMs: clock.elapsedMs(),
      path,
      content: `content ${calls}`,
      readFrom: wish.call === 'read' && unitId ? reference.file(unitId, path).moment() : 0,
      now: wish.call === 'sleep' && wish.now,
      statesBefore: 0,
      wasStarted: false,
      isUse: isUse(wish),
      outcome: null,
    }
    note(`call ${calls}: ${describeWish(wish, unitId)}`)
    reference.asked(made)
    make(app, caller, wish, made).then(
      (value) => answer(made, { ok: true, value }),
      (error: unknown) => answer(made, { ok: false, error }),
    )
    return made
  }

  function answer(made: Call, outcome: Outcome): void {
    if (made.life.end.signal.aborted) return
    note(`call ${made.number} (${made.what}) ${describeOutcome(outcome)}`)
    made.outcome = outcome
    reference.answered(made, outcome)
  }

  async function stillness(): Promise<void> {
    for (let turns = 0; turns < QUIET_TURNS; turns++) {
      if (database.isBusy()) {
        await database.quiet()
        turns = 0
      }
      await new Promise(setImmediate)
    }
  }

  function ownerOf(unitId: string): Caller {
    const heldBy = reference.units().find(({ id }) => id === unitId)?.heldBy
    return bench.neighbors.find(({ credentialId }) => credentialId === heldBy) ?? bench.roomy
  }

  await database.query(EMPTY)
  await database.query(hasHosts ? FAR_HOSTS : NO_FAR_HOSTS)
  await database.query(`update hosts set state = '${isDrained ? 'draining' : 'ready'}' where address is null`)
  const world: World = {
    random,
    clock,
    gates,
    fake,
    engine,
    hosts,
    farHosts,
    database,
    reference,
    ownerOf,
    bench,
    history,
    trace,
    note,
    label,
    app: () => app,
    startServer,
    killServer,
    later,
    call,
    stillness,
    end: async () => {
      if (!life) return
      life.end.abort(new Error('the simulation is over'))
      await database.cut(life)
    },
  }
  return world
}

/** Turns of the event loop without news, after which there will be none. */
const QUIET_TURNS = 4

const EMPTY =
  'truncate forks, units, stacks, meters, charges, usage_days, balances, secrets, boot_files, heartbeats, host_events cascade'

const NO_FAR_HOSTS = 'delete from hosts where address is not null'

export function isReady({ clock }: World, gate: Gate): boolean {
  return gate.dueMs <= clock.elapsedMs() && gate.isFree()
}
