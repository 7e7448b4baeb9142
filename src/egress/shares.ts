// Whose work is next. All connections share one thread, so what one team's units ask of it delays those of every other. A team
// that works alone may use nearly all of it; beside another one, a team that has more to do than its share waits for its turn
// while the others go at once (decisions/brokered-secrets.md). What something costs is known by its kind, in units; how
// long a unit takes is measured while the process works.

import type { Clock } from '../lib/clock.ts'

/** For bytes that a connection brings. Null: they go on at once; else it resolves when they may. */
export type Turn = (bytes: number) => Promise<void> | null

/** In units of 0.2 ms, as they were measured: what is priced below its cost exceeds its team's share when much of it comes. */
export const work = { connection: 8, name: 3, request: 2 } as const
export const BYTES_A_UNIT = 128 * 1024

export type Client = { destroyed: boolean }
export type Owner = { team: string; machine: string }

export type Shares = {
  /** Returns null where the work may begin at once, else what resolves when it may: never, if `client` is gone by then. */
  turn(owner: Owner, units: number, client?: Client): Promise<void> | null
}

/** Of the thread's time: so that what comes finds it idle as often as not, and waits for one short step at the most. */
const BESIDE_OTHERS = 0.5
const ALONE = 0.9
/** For those that wait, while another team asks: each of its connections passes the thread seven times and more. */
const BESIDE_ASKING = 0.25
/** It counts as asking for so long. */
const ASKING_FOR_MS = 50
/** A team counts for so long after its last work: those that ask now and then must find the thread free as well. */
const ACTIVE_FOR_MS = 10_000
/** What a team may do at once that has done nothing lately. */
const BURST_MS = 50
/** The same while it waits. */
const WAITING_BURST_MS = 2
const PUMP_EVERY_MS = 1
/** What a team has used counts half after so long. */
const HALF_AFTER_MS = 1000

const MEASURED_EVERY_MS = 250
/** The weight of the newest measurement. */
const NEWEST = 0.2
const UNIT_MS = { first: 0.4, least: 0.05, most: 1 } as const

type Waiting = { units: number; client: Client | undefined; go: () => void }
type Asked = { team: Team | null; atMs: number }
type Team = {
  /** In milliseconds of the thread. Below zero: it has had more than its share. */
  credit: number
  creditedAtMs: number
  /** What it has used lately. */
  used: number
  activeAtMs: number
  /** By machine, in the order of their turns. */
  waiting: Map<string, Waiting[]>
}

/** `busyMs`: how long the thread has worked so far. */
export function createShares(clock: Pick<Clock, 'monotonicMs' | 'sleep'>, busyMs: () => number): Shares {
  const teams = new Map<string, Team>()
  const thatWait = new Set<Team>()
  const unitMs = measureUnits(busyMs)
  let lookedAtMs = clock.monotonicMs()
  /** The team whose work last began without waiting, and the last other one. */
  let asked: Asked = { team: null, atMs: -Infinity }
  let askedBefore = asked

  const teamOf = (id: string, nowMs: number): Team => {
    const team = teams.get(id) ?? {
      credit: BURST_MS,
      creditedAtMs: nowMs,
      used: 0,
      activeAtMs: nowMs,
      waiting: new Map(),
    }
    team.activeAtMs = nowMs
    teams.set(id, team)
    return team
  }
  const forgetQuiet = (nowMs: number) => {
    if (nowMs - lookedAtMs < MEASURED_EVERY_MS) return
    lookedAtMs = nowMs
    for (const [id, team] of teams)
      if (!thatWait.has(team) && nowMs - team.activeAtMs > ACTIVE_FOR_MS) teams.delete(id)
  }
  const anotherAsks = (team: Team, nowMs: number) => {
    const another = asked.team === team ? askedBefore : asked
    return another.team !== null && !thatWait.has(another.team) && nowMs - another.atMs < ASKING_FOR_MS
  }
  const credit = (team: Team, nowMs: number) => {
    const isWaiting = thatWait.has(team)
    const others = thatWait.size - (isWaiting ? 1 : 0)
    const beside = isWaiting && anotherAsks(team, nowMs) ? BESIDE_ASKING : BESIDE_OTHERS
    const share = teams.size > 1 ? beside / Math.max(1, others) : ALONE
    const most = isWaiting ? WAITING_BURST_MS : BURST_MS
    team.credit = Math.min(most, team.credit + share * (nowMs - team.creditedAtMs))
    team.used *= 2 ** ((team.creditedAtMs - nowMs) / HALF_AFTER_MS)
    team.creditedAtMs = nowMs
  }
  const charge = (team: Team, units: number, nowMs: number) => {
    const ms = units * unitMs.now(nowMs, units)
    team.credit = Math.max(-BURST_MS, team.credit - ms)
    team.used += ms
  }
  /** Another one waits that has had more. */
  const goesBefore = (team: Team) => [...thatWait].some((other) => other !== team && other.used > team.used)
  const pump = async () => {
    while (thatWait.size > 0) {
      await clock.sleep(PUMP_EVERY_MS)
      const nowMs = clock.monotonicMs()
      forgetQuiet(nowMs)
      for (const team of thatWait) {
        credit(team, nowMs)
        for (let next = takeNext(team); next !== null; next = takeNext(team)) {
          team.activeAtMs = nowMs
          charge(team, next.units, nowMs)
          next.go()
        }
        if (team.waiting.size === 0) thatWait.delete(team)
      }
    }
  }

  return {
    turn({ team: id, machine }, units, client) {
      const nowMs = clock.monotonicMs()
      forgetQuiet(nowMs)
      const team = teamOf(id, nowMs)
      credit(team, nowMs)
      if (!thatWait.has(team) && (team.credit > 0 || goesBefore(team))) {
        charge(team, units, nowMs)
        if (asked.team !== team) askedBefore = asked
        asked = { team, atMs: nowMs }
        return null
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      const own = team.waiting.get(machine) ?? []
      team.waiting.set(machine, own)
      own.push({ units, client, go: resolve })
      const isFirst = thatWait.size === 0
      thatWait.add(team)
      if (isFirst) void pump()
      return promise
    },
  }
}

/** Of the unit whose turn it is; null while the team has no credit, or nothing waits. Who is gone costs no turn. */
function takeNext(team: Team): Waiting | null {
  if (team.credit <= 0) return null
  for (const [machine, own] of team.waiting) {
    const from = own.findIndex(({ client }) => client?.destroyed !== true)
    const [next] = from < 0 ? [] : own.splice(0, from + 1).slice(-1)
    team.waiting.delete(machine)
    if (from >= 0 && own.length > 0) team.waiting.set(machine, own)
    if (next !== undefined) return next
  }
  return null
}

function measureUnits(busyMs: () => number) {
  let mean: number = UNIT_MS.first
  let units = 0
  let busyAtMs = busyMs()
  let atMs = -Infinity
  return {
    /** Returns how long a unit takes, and counts those that begin. */
    now(nowMs: number, begun: number): number {
      if (nowMs - atMs >= MEASURED_EVERY_MS) {
        const busy = busyMs()
        const newest = units === 0 ? mean : (busy - busyAtMs) / units
        mean += NEWEST * (Math.min(UNIT_MS.most, Math.max(UNIT_MS.least, newest)) - mean)
        ;[units, busyAtMs, atMs] = [0, busy, nowMs]
      }
      units += begun
      return mean
    },
  }
}
