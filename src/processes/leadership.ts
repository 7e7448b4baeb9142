// The server's leadership (reliability F16, decisions/leadership.md). A server takes the lead when it starts and holds it
// until it ends. The database and the engine refuse any earlier leader, so a server that was suspended while another took
// over can do nothing more, and ends as soon as it notices.

import type { Kysely } from 'kysely'
import { type Clock, SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { runLoop } from '../lib/loop.ts'
import type { Database } from '../store/db.ts'
import {
  endEarlierLeaders,
  findLeader,
  type Leadership,
  releaseLeadership,
  renewLeadership,
  takeLeadership,
} from '../store/leaders.ts'

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

/** Renews the lead until it is stopped, and then releases it. Calls `onLost` if another server has taken it. */
export function holdLeadership(
  db: Kysely<Database>,
  { epoch, onLost, clock, log }: { epoch: number; onLost: () => void; clock: Clock; log: Log },
): { stop(): Promise<void> } {
  const stopped = new AbortController()
  const renew = async () => {
    if (!(await renewLeadership(db, { epoch }))) onLost()
  }
  const loop = { name: 'hold the lead', everyMs: RENEW_EVERY_MS, timeoutMs: 60 * SECOND, run: renew }
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
