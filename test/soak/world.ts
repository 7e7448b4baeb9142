// What all participants of a soak share: the present Berth, the journal, and how long it goes on.

import { setTimeout as delay } from 'node:timers/promises'
import type { Berth } from '../support/berth.ts'
import { type Call, send } from '../support/patient-client.ts'
import type { Journal } from './journal.ts'

export type World = {
  /** Replaced when all of Berth was killed and started again. */
  berth: Berth
  journal: Journal
  /** Aborts when nothing new is begun. */
  over: AbortSignal
}

export type Reply<T> = {
  status: number
  body: T
  /** An earlier attempt may have had an effect, or may have one later. */
  unsure: boolean
}

/** Nothing but a stuck call takes this long, with any kills. */
const STUCK_AFTER_MS = 150_000
const PAUSE_MS = 100

/**
 * Sends until one of the accepted statuses comes back, as often as it takes: only for calls that may be repeated.
 * Returns null when that takes too long, which is a fault.
 */
export async function ask<T>(
  { berth, journal }: World,
  kind: string,
  call: Call,
  accepted: number[] = [200],
): Promise<Reply<T> | null> {
  const since = Date.now()
  let unsure = false
  for (;;) {
    const outcome = await send<T>(berth, call)
    if (outcome.kind === 'answered' && accepted.includes(outcome.status)) {
      journal.done(kind, Date.now() - since)
      return { status: outcome.status, body: outcome.body, unsure }
    }
    const said = outcome.kind === 'answered' ? JSON.stringify(outcome.body).slice(0, 400) : ''
    const what = outcome.kind === 'answered' ? String(outcome.status) : outcome.kind
    if (!isTrouble(what)) journal.fault(`${kind} was answered ${what}: ${said}`)
    journal.putUpWith(`${kind} ${what}`)
    if (what !== 'refused' && what !== '503') unsure = true
    if (Date.now() - since > STUCK_AFTER_MS) {
      journal.fault(`${kind} got nowhere in ${STUCK_AFTER_MS / 1000} s, at last ${what}: ${said}`)
      return null
    }
    await delay((outcome.kind === 'answered' ? outcome.retryAfterMs : null) ?? PAUSE_MS)
  }
}

/** What a caller must expect while parts of the server and of machines are killed. */
function isTrouble(what: string): boolean {
  return ['refused', 'broken', '502', '503'].includes(what)
}

/** Makes sure that the unit is running; its process may have been killed. */
export async function start(world: World, id: string): Promise<void> {
  await ask(world, 'start', { method: 'POST', path: `/v1/units/${id}/start` })
}
