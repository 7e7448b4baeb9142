// The events of a team, for all its streams: one query of the team serves every stream. The query runs at once after
// a change of this process (domain/transactions/changes.ts), and every ten seconds for everything else: use, money,
// and changes by other processes. A stream that was interrupted briefly resumes where it was; after a longer time it
// gets a reset, and reads the lists again.

import { randomBytes } from 'node:crypto'
import type { App } from '../../app.ts'
import type { TeamEvent } from '../../contract/events.ts'
import { MINUTE, SECOND } from '../../lib/clock.ts'
import { toCents } from '../../lib/money.ts'
import { findAgent } from '../../store/credentials.ts'
import { listMarks, type Mark } from '../../store/marks.ts'
import { listUnitsByIds } from '../../store/units.ts'
import { listUsage } from '../../store/usage.ts'
import { toAgent } from '../agents/to-agent.ts'
import { creditBalanceCents } from '../billing/balance.ts'
import type { Caller } from '../credentials/caller.ts'
import { hostEventsOf } from '../hosts/tell-teams.ts'
import { toUnit } from '../units/model/to-unit.ts'

/** Changes within this time are read by one query. */
const GATHER_MS = 30
const LOOK_EVERY_MS = 10 * SECOND
/** The pause after a query that failed. */
const AGAIN_MS = SECOND
/** After each query, the pause is at least so many times as long as the query took. */
const PAUSES = 5
/** How long a disconnected client may take to resume. */
const LINGER_MS = MINUTE
/** Events that are kept for interrupted streams; more changes than this at once are sent as a reset. */
const KEPT = 500

export type NumberedEvent = TeamEvent & { id: string }

type Feed = {
  /** Tells the numbers of this feed from those of one before it. */
  name: string
  /** Of the newest event. */
  number: number
  /** The newest, oldest first, each one more than the one before. */
  kept: (TeamEvent & { number: number })[]
  /** Resolves with the next event. */
  next: PromiseWithResolvers<void>
  streams: number
  /** From the first stream on that asks for changes, so that one of them can go on after a while. */
  hasChanges: boolean
  /** Resolves after the first query: changes from then on become events. */
  ready: Promise<void>
  end: AbortController
}

const feedsOf = new WeakMap<App, Map<string, Feed>>()

/**
 * From the event after `lastId` on, until the signal aborts. A `reset` comes first where that is not known (any more).
 * `changes`: each call that changed something, as a sentence.
 */
export async function* followTeam(
  app: App,
  { teamId }: Pick<Caller, 'teamId'>,
  lastId: string | null,
  signal: AbortSignal,
  { changes = false }: { changes?: boolean } = {},
): AsyncGenerator<NumberedEvent> {
  const feed = joinFeed(app, teamId)
  feed.hasChanges ||= changes
  const idOf = (number: number) => `${feed.name}-${number}`
  try {
    await feed.ready
    let at = numberIn(feed, lastId)
    while (!signal.aborted) {
      const { promise: changed } = feed.next
      const news = at === null ? null : eventsAfter(feed, at)
      if (news === null) {
        at = feed.number
        yield { id: idOf(at), event: 'reset', data: {} }
        continue
      }
      for (const { number, ...event } of news) {
        if (changes || event.event !== 'change') yield { ...event, id: idOf(number) }
        at = number
      }
      if (news.length === 0) await settled(changed, signal)
    }
  } finally {
    leaveFeed(app, teamId, feed)
  }
}

function joinFeed(app: App, teamId: string): Feed {
  const feeds = feedsOf.get(app) ?? new Map<string, Feed>()
  feedsOf.set(app, feeds)
  const known = feeds.get(teamId)
  if (known) {
    known.streams += 1
    return known
  }
  const feed: Feed = {
    name: randomBytes(6).toString('hex'),
    number: 0,
    kept: [],
    next: Promise.withResolvers(),
    streams: 1,
    hasChanges: false,
    ready: Promise.resolve(),
    end: new AbortController(),
  }
  feeds.set(teamId, feed)
  const first = Promise.withResolvers<void>()
  first.promise.catch(() => {})
  feed.ready = first.promise
  keepFeed(app, teamId, feed, first.resolve)
    .catch((error: unknown) => first.reject(error))
    .finally(() => {
      if (feeds.get(teamId) === feed) feeds.delete(teamId)
    })
  return feed
}

function leaveFeed(app: App, teamId: string, feed: Feed): void {
  feed.streams -= 1
  if (feed.streams > 0) return
  app.clock.sleep(LINGER_MS, feed.end.signal).then(
    () => {
      if (feed.streams > 0) return
      feedsOf.get(app)?.delete(teamId)
      feed.end.abort()
    },
    () => {},
  )
}

/** Runs until the feed has no followers. Throws if the first query fails. */
async function keepFeed(app: App, teamId: string, feed: Feed, onReady: () => void): Promise<void> {
  const { clock, teamEvents } = app
  const { signal } = feed.end
  let changed = Promise.withResolvers<void>()
  const note = (id: string) => {
    if (id === teamId) changed.resolve()
  }
  // What is in no row of the team, and told once.
  const tell = (id: string, event: TeamEvent) => {
    if (id === teamId && (feed.hasChanges || event.event !== 'change')) publish(feed, [event])
  }
  teamEvents.setMaxListeners(0).on('changed', note).on('told', tell)
  try {
    let seen = await look(app, teamId, true)
    onReady()
    let lookedAtMs = clock.monotonicMs()
    while (!signal.aborted) {
      if (await isTold(app, changed.promise, signal)) await passed(app, GATHER_MS, signal)
      if (signal.aborted) return
      changed = Promise.withResolvers()
      const beganMs = clock.monotonicMs()
      const isFull = beganMs - lookedAtMs >= LOOK_EVERY_MS
      if (isFull) lookedAtMs = beganMs
      try {
        const now = await look(app, teamId, isFull)
        publish(feed, await changesBetween(app, teamId, seen, now, isFull))
        seen = {
          money: now.money ?? seen.money,
          marks: isFull ? now.marks : withoutUse(now.marks, seen.marks),
        }
        await passed(app, PAUSES * (clock.monotonicMs() - beganMs), signal)
      } catch (error) {
        app.log.warn({ err: error, teamId }, 'what changed in a team could not be read')
        changed.resolve()
        await passed(app, AGAIN_MS, signal)
      }
    }
  } finally {
    teamEvents.off('changed', note).off('told', tell)
  }
}

type Money = Extract<TeamEvent, { event: 'money' }>['data']
type Seen = { marks: Map<string, Mark>; money: Money | null }

async function look(app: App, teamId: string, withMoney: boolean): Promise<Seen> {
  const marks = await listMarks(app.db, teamId)
  return {
    marks: new Map(marks.map((mark) => [mark.id, withProgress(app, mark)])),
    money: withMoney ? await moneyOf(app, teamId) : null,
  }
}

/** How far a creation is stands in no row. */
function withProgress({ creations }: App, mark: Mark): Mark {
  const creation = creations.get(mark.id)
  return creation ? { ...mark, mark: `${mark.mark}|${JSON.stringify(creation.progress)}` } : mark
}

async function moneyOf(app: App, teamId: string): Promise<Money> {
  const now = app.clock.now()
  const [used, balances] = await Promise.all([
    listUsage(app.db, { teamId, firstDay: now.toISOString().slice(0, 10), now }),
    creditBalanceCents(app.db, [teamId]),
  ])
  const spent = used.reduce((sum, { nanoCents }) => sum + nanoCents, 0n)
  return { spentTodayCents: toCents(spent), creditBalanceCents: balances.get(teamId) ?? 0 }
}

/** Null: too much to tell one by one. */
async function changesBetween(
  app: App,
  teamId: string,
  before: Seen,
  now: Seen,
  withUse: boolean,
): Promise<TeamEvent[] | null> {
  const changed = [...now.marks.values()].filter(({ kind, id, mark, use }) => {
    const known = before.marks.get(id)
    // A host that the team's first unit comes to has not changed.
    if (!known && kind === 'host') return false
    return !known || known.mark !== mark || (withUse && known.use !== use)
  })
  const gone = [...before.marks.values()]
    .filter(({ kind, id }) => kind !== 'host' && !now.marks.has(id))
    .map(({ id }) => id)
  if (changed.length + gone.length > KEPT) return null
  const idsOf = (kind: Mark['kind']) => changed.filter((mark) => mark.kind === kind).map(({ id }) => id)
  const at = app.clock.now()
  const unitIds = idsOf('unit')
  const units = unitIds.length === 0 ? [] : await listUnitsByIds(app.db, { teamId, ids: unitIds, now: at })
  const agents = await Promise.all(idsOf('agent').map((id) => findAgent(app.db, { teamId, id, now: at })))
  const stacks = changed.filter(({ kind }) => kind === 'stack')
  const teams = idsOf('team')
  const hosts = await hostEventsOf(app, idsOf('host'))
  const isNews = now.money !== null && JSON.stringify(now.money) !== JSON.stringify(before.money)
  return [
    ...stacks.map(({ id, mark }): TeamEvent => ({ event: 'stack', data: { id, name: mark } })),
    ...units.map((unit): TeamEvent => ({ event: 'unit', data: toUnit(app, unit) })),
    ...agents.flatMap((agent): TeamEvent[] => (agent ? [{ event: 'agent', data: toAgent(agent) }] : [])),
    ...teams.map((id): TeamEvent => ({ event: 'team', data: { id } })),
    ...hosts.map((data): TeamEvent => ({ event: 'host', data })),
    ...gone.map((id): TeamEvent => ({ event: 'gone', data: { id } })),
    ...(isNews && now.money ? [{ event: 'money' as const, data: now.money }] : []),
  ]
}

/** A change of use that has no event yet gets one by a later query. */
function withoutUse(marks: Map<string, Mark>, before: Map<string, Mark>): Map<string, Mark> {
  return new Map(
    [...marks].map(([id, mark]) => {
      const known = before.get(id)
      return [id, known?.mark === mark.mark ? { ...mark, use: known.use } : mark]
    }),
  )
}

function publish(feed: Feed, events: TeamEvent[] | null): void {
  if (events?.length === 0) return
  if (events === null) {
    feed.kept = []
    feed.number += 1
  } else {
    for (const event of events) feed.kept.push({ ...event, number: (feed.number += 1) })
    feed.kept.splice(0, feed.kept.length - KEPT)
  }
  feed.next.resolve()
  feed.next = Promise.withResolvers()
}

/** Null where some of them are not kept. */
function eventsAfter(feed: Feed, at: number): Feed['kept'] | null {
  const missed = feed.number - at
  return missed > feed.kept.length ? null : feed.kept.slice(feed.kept.length - missed)
}

function numberIn({ name, number }: Feed, id: string | null): number | null {
  const [of, digits = ''] = id?.split('-') ?? []
  if (of !== name || !/^\d{1,15}$/.test(digits)) return null
  return Number(digits) <= number ? Number(digits) : null
}

/** False: it is time to look all the same. */
async function isTold(app: App, changed: Promise<void>, signal: AbortSignal): Promise<boolean> {
  const over = new AbortController()
  const late = passed(app, LOOK_EVERY_MS, AbortSignal.any([signal, over.signal])).then(() => false)
  const told = await Promise.race([changed.then(() => true), late])
  over.abort()
  return told
}

async function passed(app: App, ms: number, signal: AbortSignal): Promise<void> {
  await app.clock.sleep(ms, signal).catch(() => {})
}

async function settled(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const over = new AbortController()
  const aborted = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true, signal: over.signal })
    if (signal.aborted) resolve()
  })
  await Promise.race([work, aborted])
  over.abort()
}
