// The server's leadership (reliability F16, decisions/leadership.md). A server takes the lead when it starts and holds it
// until it ends. The database and the engine refuse any earlier leader, so a server that was suspended while another took
// over can do nothing more, and ends as soon as it notices.

import type { Kysely } from 'kysely'
import { type Clock, SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { runLoop } from '../lib/loop.ts'
import { addressText, type Address, parseAddress } from '../lib/setting-values.ts'
import type { Database } from '../store/db.ts'
import {
  endEarlierLeaders,
  findLeader,
  type Leadership,
  releaseLeadership,
  renewLeadership,
  takeLeadership,
} from '../store/leaders.ts'
import { isOfNewerRelease, migrate } from '../store/migrate.ts'
import { errorCodeOf } from '../lib/error-code.ts'

const RENEW_EVERY_MS = 5 * SECOND
/** A leader that has not renewed for this long counts as gone. */
const SILENT_FOR_MS = 3 * RENEW_EVERY_MS
const LOOK_EVERY_MS = SECOND
const LONGEST_ENDING_MS = 30 * SECOND
const ENDING_LOOK_MS = 20

/**
 * Returns the new epoch once no earlier leader can write any more. `holder` identifies the host and data directory,
 * whose supervisor runs one server at a time. `above` is the newest epoch that the engine has seen, which a restored
 * database may not know. Throws a sentence if another Berth is alive on this database.
 */
export async function acquireLeadership(
  db: Kysely<Database>,
  { holder, above, clock }: { holder: string; above: number; clock: Clock },
): Promise<number> {
  for (;;) {
    const found = await untilFree(db, { holder, clock })
    const epoch = await takeLeadership(db, { found, above, holder })
    if (epoch === null) continue
    await endEarlier(db, epoch, clock)
    return epoch
  }
}

async function untilFree(
  db: Kysely<Database>,
  { holder, clock }: { holder: string; clock: Clock },
): Promise<Leadership | null> {
  const first = await findLeader(db)
  const giveUpMs = clock.monotonicMs() + SILENT_FOR_MS
  for (let found = first; ; found = await findLeader(db)) {
    const isFree = !found?.holder || found.holder === holder || found.silentMs >= SILENT_FOR_MS
    // If the database's clock was set back, the silence seems short for ever, hence the deadline.
    if (isFree || clock.monotonicMs() >= giveUpMs) return found
    if (isAliveSince(first, found)) throw new Error(isTaken(found?.holder ?? ''))
    await clock.sleep(LOOK_EVERY_MS)
  }
}

function isAliveSince(first: Leadership | null, found: Leadership | null): boolean {
  // The duration of the silence is not compared: polling in step with the renewals would see the same duration each
  // time.
  return found?.epoch !== first?.epoch || found?.renewedAt.getTime() !== first?.renewedAt.getTime()
}

function isTaken(holder: string): string {
  const instance = holder.split(' ')[0]
  return `Another Berth (its instance is ${instance}) uses this database, and a database serves only one Berth: stop the other one, or set DATABASE_URL to another database.`
}

async function endEarlier(db: Kysely<Database>, epoch: number, clock: Clock): Promise<void> {
  const giveUpMs = clock.monotonicMs() + LONGEST_ENDING_MS
  while (!(await endEarlierLeaders(db, { epoch }))) {
    if (clock.monotonicMs() >= giveUpMs)
      throw new Error('The database connections of the previous server do not end.')
    await clock.sleep(ENDING_LOOK_MS)
  }
}

/** Where the other servers reach the one that leads is a part of `holder`; null: it is the only one. */
export function holderOf({
  instance,
  boot,
  at,
}: {
  instance: string
  boot: string
  at: Address | null
}): string {
  return `${instance} ${boot}${at ? ` ${addressText(at)}` : ''}`
}

/** Null: of the only server. */
export function addressIn(holder: string): Address | null {
  const text = holder.split(' ')[2]
  return text === undefined ? null : parseAddress(text)
}

/**
 * Of several servers, which see by themselves that the one that leads is gone. It may stand still for the silence less one
 * renewal; half of the five seconds in which another one is to serve are left for its start on a busy machine.
 */
const SEVERAL = { renewEveryMs: SECOND / 2, silentForMs: 2.5 * SECOND, lookEveryMs: SECOND / 4 }

type Waiting = {
  holder: string
  clock: Clock
  log: Log
  signal: AbortSignal
  /** Called with the other server that leads, or null, each time that it was looked up. */
  onLeader: (at: Address | null) => void
}

/**
 * Of several servers: returns a new epoch once no other one leads, and none can write any more. What counts is how long the
 * row did not change while it could be read: neither the database's clock nor a time without it makes a server lead. Rejects
 * when the signal aborts.
 */
export async function awaitLeadership(
  db: Kysely<Database>,
  { holder, clock, log, signal, onLeader }: Waiting,
): Promise<number> {
  let seen: { renewal: string; sinceMs: number } | null = null

  const isFree = (found: Leadership | null): boolean => {
    if (!found?.holder || found.holder === holder) return true
    const renewal = `${found.epoch} ${found.renewedAt.getTime()}`
    const nowMs = clock.monotonicMs()
    if (seen?.renewal !== renewal) seen = { renewal, sinceMs: nowMs }
    // One that is the only server renews less often.
    return nowMs - seen.sinceMs >= (addressIn(found.holder) ? SEVERAL.silentForMs : SILENT_FOR_MS)
  }

  const look = async (): Promise<number | null> => {
    const found = await findLeaderOrMigrate(db)
    if (!isFree(found)) {
      onLeader(addressIn(found?.holder ?? ''))
      return null
    }
    onLeader(null)
    if (await isOfNewerRelease(db)) {
      log.warn('the database is of a newer release of Berth, of which no server leads: this one waits')
      return null
    }
    const epoch = await takeLeadership(db, { found, above: 0, holder })
    if (epoch !== null) await endEarlier(db, epoch, clock)
    return epoch
  }

  for (;;) {
    signal.throwIfAborted()
    try {
      const epoch = await look()
      if (epoch !== null) return epoch
    } catch (error) {
      seen = null
      log.warn({ err: error }, 'cannot be seen which server leads; will be retried')
    }
    await clock.sleep(SEVERAL.lookEveryMs, signal)
  }
}

const UNDEFINED_TABLE = '42P01'

/** A database that is new has no tables, and nobody leads. */
async function findLeaderOrMigrate(db: Kysely<Database>): Promise<Leadership | null> {
  return await findLeader(db).catch(async (error: unknown) => {
    if (errorCodeOf(error) !== UNDEFINED_TABLE) throw error
    await migrate(db)
    return null
  })
}

type Holding = { epoch: number; onLost: () => void; clock: Clock; log: Log; isOneOfSeveral?: boolean }

/** Renews the lead until it is stopped, and then releases it. Calls `onLost` if another server has taken it. */
export function holdLeadership(
  db: Kysely<Database>,
  { epoch, onLost, clock, log, isOneOfSeveral = false }: Holding,
): { stop(): Promise<void> } {
  const stopped = new AbortController()
  const renew = async () => {
    if (!(await renewLeadership(db, { epoch }))) onLost()
  }
  const everyMs = isOneOfSeveral ? SEVERAL.renewEveryMs : RENEW_EVERY_MS
  const loop = { name: 'hold the lead', everyMs, timeoutMs: 60 * SECOND, run: renew }
  const holding = runLoop(loop, { clock, log, signal: stopped.signal })
  return {
    stop: async () => {
      stopped.abort()
      await holding
      await releaseLeadership(db, { epoch }).catch((error: unknown) => {
        log.warn({ err: error }, 'leadership was not released; it expires soon')
      })
    },
  }
}
