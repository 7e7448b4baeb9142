// The server's right to act (reliability F16, decision 0057). It takes the lead as it starts and holds it until it ends;
// the database and the engine refuse whoever led before, so a server that stood still while another took its place
// can do nothing more, and ends as soon as it notices.

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
/** Whoever has not renewed for this long is taken to be gone. */
const SILENT_FOR_MS = 3 * RENEW_EVERY_MS
const LOOK_EVERY_MS = SECOND
const LONGEST_ENDING_MS = 30 * SECOND
const ENDING_LOOK_MS = 20

/**
 * Answers the new epoch once nobody of an earlier one can write any more. `holder`: a server of the same host and
 * data directory, whose supervisor runs one at a time. `above`: what the engine has seen, which a database that
 * was restored may not know of. Throws a sentence when another Berth is alive on this database.
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
    // A clock of the database that was set back shows a silence too short for ever.
    if (isFree || clock.monotonicMs() >= giveUpMs) return found
    if (isAliveSince(first, found)) throw new Error(isTaken(found?.holder ?? ''))
    await clock.sleep(LOOK_EVERY_MS)
  }
}

function isAliveSince(first: Leadership | null, found: Leadership | null): boolean {
  // Not by how long it was silent: who looks in step with its renewals finds the same silence each time.
  return found?.epoch !== first?.epoch || found?.renewedAt.getTime() !== first?.renewedAt.getTime()
}

function isTaken(holder: string): string {
  const instance = holder.split(' ')[0]
  return `Another Berth (its instance is ${instance}) works on this database, and one database serves one Berth: stop that one, or set DATABASE_URL to another database.`
}

async function endEarlier(db: Kysely<Database>, epoch: number, clock: Clock): Promise<void> {
  const giveUpMs = clock.monotonicMs() + LONGEST_ENDING_MS
  while (!(await endEarlierLeaders(db, { epoch }))) {
    if (clock.monotonicMs() >= giveUpMs)
      throw new Error('Connections of the server before this one do not end.')
    await clock.sleep(ENDING_LOOK_MS)
  }
}

/** Renews the lead until stopped, and then gives it back. `onLost` when it is another's. */
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
        log.warn({ err: error }, 'the lead was not given back; it is free in a while')
      })
    },
  }
}
