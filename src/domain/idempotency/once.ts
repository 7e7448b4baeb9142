// A call that makes something makes it once for each key it is given, and answers every repetition alike
// (design 4). The key is claimed by the very transaction that makes the thing, and with it is kept whatever
// nobody could find out later; so the process may die at any point after that. Of all answers worked out for
// a key the first one written down is the answer. Kept text is sealed: it can hold secrets, and so can what a
// fingerprint was taken of.

import { randomUUID } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { AppError, conflict } from '../../contract/errors.ts'
import { DAY } from '../../lib/clock.ts'
import type { Database } from '../../store/db.ts'
import {
  claimKey,
  deleteKeys,
  findKey,
  keepAnswer,
  keepForKey,
  type KeyClaim,
  type KeyName,
} from '../../store/idempotency.ts'
import { asksTheSame, type Fingerprint } from './fingerprint.ts'

export type KeyedCall = { name: KeyName; request: Fingerprint }

/** What the transaction that makes something does with the call's key. */
export type Once = {
  /** Its first statement: from there on nobody else makes this. */
  claim(db: Kysely<Database>): Promise<void>
  /** Its last: what an answer given later will need. JSON. */
  keep(db: Kysely<Database>, kept: unknown): Promise<void>
}

type Work<T> = {
  make: (once: Once) => Promise<T>
  /** The answer of a call that broke off, or is still under way, once it had kept this. */
  resume: (kept: unknown) => Promise<T>
}

/** How the call ended, for good. What is done is JSON. */
type Ending<T> = { kind: 'done'; value: T } | { kind: 'refused'; error: AppError }

export type Answer<T> = Ending<T> & {
  /** An earlier call made it. */
  replayed: boolean
}

const KEYS_LIVE_MS = DAY

/** Somebody claimed the key since it was looked for. */
class KeyTaken extends Error {}

/** Throws what says nothing about the thing made: outages and faults, after which the call can be repeated. */
export async function answerOnce<T>(
  app: App,
  call: KeyedCall,
  { make, resume }: Work<T>,
): Promise<Answer<T>> {
  for (;;) {
    const found = await findKey(app.db, call.name, { claimedAfter: expiredBy(app) })
    if (found) return { replayed: true, ...(await repeat(app, call, found, resume)) }
    try {
      return { replayed: false, ...(await begin(app, call, make)) }
    } catch (error) {
      if (!(error instanceof KeyTaken)) throw error
    }
  }
}

/** A loop's round. */
export async function forgetOldKeys(app: App): Promise<void> {
  await deleteKeys(app.db, { claimedBefore: expiredBy(app), limit: 1000 })
}

async function begin<T>(app: App, { name, request }: KeyedCall, make: Work<T>['make']): Promise<Ending<T>> {
  const claim = randomUUID()
  let kept = false
  const once: Once = {
    claim: async (db) => {
      const sealed = seal(app, name, 'request', request)
      const times = { now: app.clock.now(), freeBefore: expiredBy(app) }
      if (!(await claimKey(db, name, { claim, request: sealed, ...times }))) throw new KeyTaken()
    },
    keep: async (db, value) => {
      await keepForKey(db, name, { claim, kept: seal(app, name, 'kept', value) })
      kept = true
    },
  }
  const ending = await endingOf(() => make(once))
  if (kept) return await firstKept(app, name, claim, ending)
  // Refused before anything was made: the key is free for another try.
  if (ending.kind === 'refused') return ending
  throw new Error(`${name.route} made something and kept nothing of it`)
}

async function repeat<T>(
  app: App,
  { name, request }: KeyedCall,
  found: KeyClaim,
  resume: Work<T>['resume'],
): Promise<Ending<T>> {
  if (!asksTheSame(open<Fingerprint>(app, name, 'request', found.request), request)) {
    throw conflict(
      'This Idempotency-Key came with another request within the last 24 hours. Send that request again ' +
        'for its answer, or choose a new key to make something else.',
    )
  }
  if (found.answer) return toEnding(open<StoredEnding<T>>(app, name, 'answer', found.answer))
  if (!found.kept) throw new Error('a key was claimed and nothing kept for it')
  const kept = open<unknown>(app, name, 'kept', found.kept)
  return await firstKept(app, name, found.claim, await endingOf(() => resume(kept)))
}

async function endingOf<T>(work: () => Promise<T>): Promise<Ending<T>> {
  try {
    return { kind: 'done', value: await work() }
  } catch (error) {
    const isFinal = error instanceof AppError && error.code !== 'unavailable' && error.code !== 'internal'
    if (!isFinal) throw error
    return { kind: 'refused', error }
  }
}

/** Writes the ending down, unless there is one: then that is the answer. */
async function firstKept<T>(app: App, name: KeyName, claim: string, ending: Ending<T>): Promise<Ending<T>> {
  const answer = seal(app, name, 'answer', toStored(ending))
  const first = await app.failpoints.effect('idempotency.answer', () =>
    keepAnswer(app.db, name, { claim, answer }),
  )
  if (first === null || first.equals(answer)) return ending
  return toEnding(open<StoredEnding<T>>(app, name, 'answer', first))
}

type StoredEnding<T> =
  | { done: T }
  | { refused: Pick<AppError, 'code' | 'status' | 'message'> & { details?: unknown } }

function toStored<T>(ending: Ending<T>): StoredEnding<T> {
  if (ending.kind === 'done') return { done: ending.value }
  const { code, status, message, details } = ending.error
  return { refused: { code, status, message, details } }
}

function toEnding<T>(stored: StoredEnding<T>): Ending<T> {
  if ('done' in stored) return { kind: 'done', value: stored.done }
  const { code, status, message, details } = stored.refused
  return { kind: 'refused', error: new AppError(code, status, message, { details }) }
}

type Column = 'request' | 'kept' | 'answer'

function seal(app: App, name: KeyName, column: Column, value: unknown): Buffer {
  return app.secretKey.seal(Buffer.from(JSON.stringify(value)), context(name, column))
}

/** What opens was written here, of the type its column has. */
function open<T>(app: App, name: KeyName, column: Column, sealed: Buffer): T {
  return JSON.parse(app.secretKey.open(sealed, context(name, column)).toString())
}

function context({ teamId, route, key }: KeyName, column: Column): string[] {
  return ['idempotency key', teamId, route, key, column]
}

function expiredBy({ clock }: App): Date {
  return new Date(clock.now().getTime() - KEYS_LIVE_MS)
}
