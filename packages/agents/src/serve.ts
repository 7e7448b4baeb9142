// The controller of a leased queue: one unit for each session, accepted only once its unit stands, several at once. What cannot
// begin stays queued for others, or is ended with a sentence in the log; nothing is tried for ever.

import { setTimeout as sleep } from 'node:timers/promises'
import { BerthError, type Process, type Unit } from '../../sdk/src/index.ts'
import type { Claim } from './claim.ts'
import { type LeasedQueue, QueueRefused, type Session, type Tell, type WorkItem } from './queue.ts'
import type { SessionUnits } from './session-units.ts'
import { toolsOf } from './tools.ts'
import { envOf, type Following, followWorker, putToken, runningWorker, runWorker } from './worker.ts'

export type ServeOptions = {
  queue: LeasedQueue
  units: SessionUnits
  /** How many sessions at most work at one time. */
  atOnce: number
  tell: Tell
  signal: AbortSignal
  /** Aborts where another controller follows: no more work is asked for, and what is under way goes on to its end. */
  leaving?: AbortSignal | undefined
  /** What is under way, by session: shared with the controllers of the same queue that this one follows. */
  underWay?: Set<string> | undefined
  /** Pauses between empty polls, after failures, between sweeps and while the team is full, in ms. */
  pauses?: Partial<Pauses> | undefined
}

type Pauses = { empty: number; failed: number; mostFailed: number; sweep: number; full: number }

const defaults: Pauses = { empty: 1000, failed: 1000, mostFailed: 60_000, sweep: 60_000, full: 10_000 }
/** How often an item may fail to begin before it is ended. */
const ATTEMPTS = 3
/** How long a unit that was seen is taken to be there. */
const SEEN_MS = 10_000
/** Of what a worker in a unit prints: its end, which says why it failed. */
const MAX_SAID = 250
/** Of items that are remembered as failed or left. */
const KEPT = 10_000

/**
 * Resolves when the signal has aborted and everything under way has stopped, or `leaving` and all of it has ended. Throws
 * `QueueRefused`, also if this service refuses the key.
 */
export async function serveQueue({ pauses, ...given }: ServeOptions): Promise<void> {
  const refused = new AbortController()
  const options = { ...given, signal: AbortSignal.any([given.signal, refused.signal]) }
  await serveUntil(options, { ...defaults, ...pauses }, (why) => refused.abort(why))
  if (refused.signal.aborted) throw refused.signal.reason
}

type Refuse = (why: QueueRefused) => void

async function serveUntil(options: ServeOptions, pause: Pauses, refuse: Refuse): Promise<void> {
  const { queue, signal, tell, atOnce, leaving = new AbortController().signal } = options
  const asking = AbortSignal.any([signal, leaving])
  const controller = createController(options, refuse)
  const over = new AbortController()
  const sweeping = sweepOften(controller, pause.sweep, {
    ...options,
    signal: AbortSignal.any([asking, over.signal]),
  })
  try {
    // The first answer is told too.
    for (let failures = -1; !asking.aborted; ) {
      if (controller.running() >= atOnce) {
        await Promise.race([controller.anyDone(), wait(pause.empty, asking)])
        continue
      }
      if (controller.isFull()) await wait(pause.full, asking)
      let item: WorkItem | null
      try {
        // Who leaves takes what was given to it meanwhile.
        item = await queue.poll(signal)
        if (failures !== 0) tell({ kind: 'asked', session: null, sentence: 'the queue answers' })
        failures = 0
      } catch (error) {
        if (signal.aborted) break
        if (error instanceof QueueRefused) throw error
        failures = Math.min(Math.max(failures, 0) + 1, 16)
        const ms = Math.min(pause.mostFailed, pause.failed * 2 ** (failures - 1)) * (0.75 + Math.random() / 2)
        const sentence = `the queue could not be asked, again in ${Math.ceil(ms / 1000)} s: ${sentenceOf(error)}`
        tell({ kind: 'failing', session: null, sentence })
        await wait(ms, asking)
        continue
      }
      // A queue that gives the same again at once, such as by a cache before it, is asked no faster than an empty one.
      const isNew = item !== null && controller.take(item, { isAccepted: false })
      if (!isNew) await wait(pause.empty * (1 + Math.random()), asking)
    }
    if (!signal.aborted) await controller.allDone()
  } finally {
    over.abort()
    controller.stop()
    await Promise.all([controller.allDone(), sweeping])
  }
}

function createController(
  { queue, units, tell, signal: given, underWay = new Set() }: ServeOptions,
  refuse: Refuse,
) {
  const gone = new AbortController()
  const signal = AbortSignal.any([given, gone.signal])
  const working = new Map<string, Promise<void>>()
  const failures = new Map<string, number>()
  const say = (session: string | null, sentence: string) => tell({ kind: 'said', session, sentence })
  let full = false

  const note = (id: string): number => {
    const count = (failures.get(id) ?? 0) + 1
    failures.set(id, count)
    for (const [oldest] of failures) if (failures.size > KEPT) failures.delete(oldest)
    return count
  }

  const work = async (item: WorkItem, isAccepted: boolean): Promise<void> => {
    const { sessionId } = item
    if (sessionId === null) {
      const sentence = `work of the unknown kind "${item.kind}" is left for others`
      if (note(item.id) === 1) tell({ kind: 'left', session: null, sentence })
      return
    }
    const known = { ...item, sessionId }
    try {
      const [session, found] = await Promise.all([
        queue.session(sessionId, item, signal),
        units.find(sessionId),
      ])
      if (session.hasEnded) return await endSession(known, isAccepted)
      const { metadata } = session
      const worker = workerFor(session, found)
      const lacks =
        session.worker && !worker
          ? [...session.lacks, 'it works without what only a worker in its unit does: its work has no token']
          : session.lacks
      for (const lack of lacks) say(sessionId, lack)
      const needed = worker && { env: envOf(worker), hosts: worker.brokered?.hosts ?? [] }
      let unit = await units.standing(sessionId, { metadata, key: item.id, ...needed }, found)
      let seenAt = performance.now()
      full = false
      if (worker) await putToken(unit, worker)
      if (!isAccepted) await queue.accept(item, signal)
      if (worker) {
        await followed(async (following) => await runWorker(unit, worker, following))
        return await over(known, unit)
      }
      const begun = `work ${item.id} has begun in unit ${unit.id}`
      const without = lacks.length > 0 && { why: lacks.join('; ') }
      tell({ kind: 'begun', session: sessionId, sentence: begun, unitId: unit.id, ...without })
      const tools = toolsOf(async () => {
        if (performance.now() - seenAt < SEEN_MS) return unit
        // One that was destroyed meanwhile is made again, empty.
        unit = await unit.refresh().catch(async (error: unknown) => {
          if (!(error instanceof BerthError && error.code === 'not_found')) throw error
          return await units.standing(sessionId, { metadata, key: `${item.id}-again` })
        })
        seenAt = performance.now()
        return unit
      })
      await queue.run(known, tools, signal)
      await over(known, unit)
    } catch (error) {
      if (!signal.aborted) await failed(known, isAccepted, error)
    }
  }

  const over = async ({ id, sessionId }: { id: string; sessionId: string }, unit: Unit): Promise<void> => {
    failures.delete(id)
    tell({ kind: 'over', session: sessionId, sentence: `work ${id} is over` })
    if (!signal.aborted && (await queue.session(sessionId, null, signal)).hasEnded)
      await destroyed(sessionId, unit)
  }

  /** A worker in the unit outlives this controller, and ends its item itself. */
  const followed = async (follow: (following: Following) => Promise<number | null>) => {
    let last = ''
    const write = async ({ text }: { text: string }) => void (last = (last + text).slice(-MAX_SAID))
    const code = await follow({ write, tell, signal, isEnded: false })
    if (code === null) throw new Error('the worker was lost with its unit')
    if (code !== 0) throw new WorkerFailed(`the worker in its unit ended with ${code}: ${last.trim()}`)
  }

  /** The worker that a controller before this one has begun. */
  const resume = async (session: string, unit: Unit, worker: Process): Promise<void> => {
    const sentence = `its worker of before goes on in unit ${unit.id}`
    tell({ kind: 'begun', session, sentence, unitId: unit.id })
    const { to } = worker.info.output
    await followed(async (following) => await followWorker(worker, to, session, following))
    await over({ id: worker.id, sessionId: session }, unit)
  }

  const endSession = async (item: WorkItem & { sessionId: string }, isAccepted: boolean): Promise<void> => {
    const { sessionId: session } = item
    tell({ kind: 'ended', session, sentence: 'the session has ended: its work is ended too' })
    if (!isAccepted) await queue.accept(item, signal).catch(() => {})
    await queue.end(item, signal)
    await destroyUnitsOf(session)
  }

  const destroyed = async (session: string, unit: Unit): Promise<void> => {
    await units.destroy(unit)
    const sentence = `the session has ended, and unit ${unit.id} was destroyed`
    tell({ kind: 'ended', session, sentence })
  }

  const destroyUnitsOf = async (session: string): Promise<void> => {
    for (const each of await units.list()) if (each.session === session) await units.destroy(each.unit)
  }

  const failed = async (item: WorkItem & { sessionId: string }, isAccepted: boolean, error: unknown) => {
    const { sessionId } = item
    const sentence = sentenceOf(error)
    const refusal = refusalOf(error)
    if (refusal) return refuse(refusal)
    if (isFullTeam(error)) {
      full = true
      const stays = `there is no room for another unit, and work ${item.id} stays queued: ${sentence}`
      tell({
        kind: 'full',
        session: sessionId,
        sentence: stays,
        why: `No room for another unit: ${sentence}`,
      })
      return
    }
    const count = isPermanent(error) ? ATTEMPTS : note(item.id)
    if (count < ATTEMPTS) {
      say(sessionId, `work ${item.id} could not begin, and is left to be given again: ${sentence}`)
      return
    }
    const refused = `work ${item.id} cannot begin, and is ended: ${sentence}`
    tell({ kind: 'refused', session: sessionId, sentence: refused, why: sentence })
    try {
      if (!isAccepted) await queue.accept(item, signal).catch(() => {})
      await queue.end(item, signal)
    } catch (cause) {
      say(sessionId, `work ${item.id} could not be ended: ${sentenceOf(cause)}`)
    }
  }

  const keep = (key: string, task: Promise<void>) => {
    const done = task
      .catch((error: unknown) => say(key, `its work failed: ${sentenceOf(error)}`))
      .finally(() => {
        working.delete(key)
        underWay.delete(key)
      })
    working.set(key, done)
    underWay.add(key)
  }

  return {
    running: () => underWay.size,
    isFull: () => full,
    anyDone: async () => await Promise.race(working.values()),
    allDone: async () => await Promise.all(working.values()),
    stop: () => gone.abort(),

    /** One item of a session at a time: what comes meanwhile is given again later. Returns whether it came for the first time. */
    take(item: WorkItem, { isAccepted }: { isAccepted: boolean }): boolean {
      const key = item.sessionId ?? item.id
      if (underWay.has(key)) return false
      const isNew = !failures.has(item.id)
      keep(key, work(item, isAccepted))
      return isNew
    },

    /** Destroys the units of sessions that ended while nobody looked, and begins what was accepted and not begun. */
    async sweep(isFirst: boolean): Promise<void> {
      const unitsNow = await units.list().catch((error: unknown) => {
        const refusal = refusalOf(error)
        if (refusal) refuse(refusal)
        throw error
      })
      for (const { session, unit } of unitsNow) {
        if (underWay.has(session) || signal.aborted) continue
        const worker = isFirst && unit.state === 'running' ? await runningWorker(unit) : null
        if (worker && !underWay.has(session)) keep(session, resume(session, unit, worker))
        if (underWay.has(session) || !(await queue.session(session, null, signal)).hasEnded) continue
        await destroyed(session, unit)
      }
      for (const item of await queue.stranded(signal)) {
        if (signal.aborted || underWay.has(item.sessionId ?? item.id)) continue
        say(item.sessionId, `work ${item.id} was accepted and never begun: it begins now`)
        this.take(item, { isAccepted: true })
      }
    },
  }
}

async function sweepOften(
  controller: ReturnType<typeof createController>,
  everyMs: number,
  { signal, tell }: ServeOptions,
): Promise<void> {
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    await controller.sweep(isFirst).catch((error: unknown) => {
      if (signal.aborted) return
      const sentence = `what is left over could not be looked for: ${sentenceOf(error)}`
      tell({ kind: 'said', session: null, sentence })
    })
    await wait(everyMs, signal)
  }
}

/** Of a call to this service: that it refuses the key. */
export function refusalOf(error: unknown): QueueRefused | null {
  if (!(error instanceof BerthError && error.code === 'unauthorized')) return null
  return new QueueRefused('The key of Berth was refused: it was revoked or has ended.')
}

/** The limits that another unit's end lifts. */
const LIFTED = new Set(['concurrency', 'dailySpend', 'disk', 'volume'])

/** Whether the same create may succeed once another unit has gone. */
export function isFullTeam(error: unknown): boolean {
  if (!(error instanceof BerthError)) return false
  const { field } = (error.details ?? {}) as { field?: unknown }
  if (error.code === 'policy_violation') return typeof field === 'string' && LIFTED.has(field)
  return ['quota_exceeded', 'payment_required', 'unavailable'].includes(error.code)
}

/** Work that was accepted before comes without its token, which the unit has a placeholder of by then. */
function workerFor({ worker }: Session, unit: Unit | null): Claim | null {
  const { token, brokered } = worker ?? { token: null, brokered: null }
  const isKnown = brokered !== null && unit?.info.env[brokered.variable] !== undefined
  return token !== null || isKnown ? worker : null
}

/** What the same call is answered with for ever. */
function isPermanent(error: unknown): boolean {
  return (
    error instanceof WorkerFailed ||
    (error instanceof BerthError &&
      ['validation', 'policy_violation', 'forbidden', 'not_found'].includes(error.code))
  )
}

/** It has ended its item itself. */
class WorkerFailed extends Error {}

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {})
}

/** Of an error of anybody: one line. */
function sentenceOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return message.replace(/\s+/g, ' ').slice(0, 300)
}
