// A call with an Idempotency-Key makes its thing once, and every repetition gets the same answer (design 4). The
// transaction that makes the thing also claims the key and stores whatever cannot be computed later, so the process
// may die at any point after that. The first answer written for a key is the answer. Stored text is encrypted,
// because it can contain secrets, and so can the input of a fingerprint.

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
  releaseKey,
} from '../../store/idempotency.ts'
import { asksTheSame, type Fingerprint } from './fingerprint.ts'

export type KeyedCall = { name: KeyName; request: Fingerprint }

/** What the transaction that makes something does with the call's key. */
export type Once = {
  /** Its first statement: from then on no other call makes this. */
  claim(db: Kysely<Database>): Promise<void>
  /** Its last statement: stores, as JSON, what a later answer needs. */
  keep(db: Kysely<Database>, kept: unknown): Promise<void>
  /** What was made is undone, and the same call is worth another try: with its key it then makes it again. */
  release(): Promise<void>
}

type Work<T> = {
  make: (once: Once) => Promise<T>
  /** Builds the answer of a call that broke off, or is in progress, after it stored this. */
  resume: (kept: unknown) => Promise<T>
}

/** The final result of the call. `value` is JSON. */
type Ending<T> = { kind: 'done'; value: T } | { kind: 'refused'; error: AppError }

export type Answer<T> = Ending<T> & {
  /** True: an earlier call made it. */
  replayed: boolean
}

const KEYS_LIVE_MS = DAY

/** Another call claimed the key after the look-up. */
class KeyTaken extends Error {}

/** Throws outages and internal errors, after which the call can be repeated. */
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

/** One run of the background job that deletes old keys. */
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
    release: async () => await releaseKey(app.db, name, claim),
  }
  const ending = await endingOf(() => make(once))
  if (kept) return await firstKept(app, name, claim, ending)
  // Refused before anything was made: the key stays free for another call.
  if (ending.kind === 'refused') return ending
  throw new Error(`${name.route} created something and stored nothing for its key`)
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
  if (!found.kept) throw new Error('a key was claimed and nothing was stored for it')
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

/** Stores the result, unless one is stored already: then that one is the answer. */
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

/** The decrypted value was written here, with the type of its column. */
function open<T>(app: App, name: KeyName, column: Column, sealed: Buffer): T {
  return JSON.parse(app.secretKey.open(sealed, context(name, column)).toString())
}

function context({ teamId, route, key }: KeyName, column: Column): string[] {
  return ['idempotency key', teamId, route, key, column]
}

function expiredBy({ clock }: App): Date {
  return new Date(clock.now().getTime() - KEYS_LIVE_MS)
}
