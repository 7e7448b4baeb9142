// Reports units with sessions in progress to the server, which does not put these to sleep. Only sessions longer than
// 100 ms are reported. The end of a reported session is sent immediately, because the client may ask to sleep the unit
// next.

import { type Clock, SECOND } from '../../lib/clock.ts'
import { runLoop } from '../../lib/loop.ts'
import type { Log } from '../../lib/log.ts'
import type { ServerClient } from './client.ts'

/** Sessions longer than this are reported. */
const LONG_AFTER_MS = 100
/** The server assumes that a silent gateway has no visits (domain/units/activity/sessions.ts). */
const REPEAT_EVERY_MS = 5 * SECOND

export type LongSessions = {
  begin(unitId: string, endpointId: string): () => void
  /** Sends everything again, to a new server. */
  resend(): void
  run(signal: AbortSignal): Promise<void>
}

/** `endpoints`: the number of visits at each. */
type Open = { visits: number; sinceMs: number; endpoints: Map<string, number> }
/** Units with long visits, and the endpoints of these. */
type Lasting = ReadonlyMap<string, string[]>
/** The limit of units whose endpoints are named; the others count without them. */
const MAX_NAMED = 1000

export function createLongSessions({
  server,
  worker = 0,
  clock,
  log,
}: {
  server: ServerClient
  worker?: number
  clock: Clock
  log: Log
}): LongSessions {
  const units = new Map<string, Open>()
  let told: Lasting = new Map()
  let toldMs = -Infinity
  let isTelling = false
  let hasChanged = false

  /** One at a time, because the server uses the last report. */
  async function tell(): Promise<void> {
    hasChanged = true
    if (isTelling) return
    isTelling = true
    try {
      while (hasChanged) {
        hasChanged = false
        await tellOnce()
      }
    } catch {
      // The server is unavailable. The next iteration reports again.
    } finally {
      isTelling = false
    }
  }

  async function tellOnce(): Promise<void> {
    const nowMs = clock.monotonicMs()
    const lasting = new Map<string, string[]>()
    for (const [unitId, { sinceMs, endpoints }] of units)
      if (nowMs - sinceMs >= LONG_AFTER_MS) lasting.set(unitId, [...endpoints.keys()].sort())
    const isOld = lasting.size > 0 && nowMs - toldMs >= REPEAT_EVERY_MS
    if (!isOld && isSame(lasting, told)) return
    const endpoints = Object.fromEntries([...lasting].slice(0, MAX_NAMED))
    const who = worker === 0 ? {} : { worker }
    await server.ask('visits', { ...who, unitIds: [...lasting.keys()], endpoints })
    told = lasting
    toldMs = nowMs
  }

  return {
    begin(unitId, endpointId) {
      const open = units.get(unitId) ?? { visits: 0, sinceMs: clock.monotonicMs(), endpoints: new Map() }
      const { endpoints } = open
      open.visits += 1
      endpoints.set(endpointId, (endpoints.get(endpointId) ?? 0) + 1)
      units.set(unitId, open)
      return () => {
        open.visits -= 1
        const left = (endpoints.get(endpointId) ?? 0) - 1
        if (left > 0) endpoints.set(endpointId, left)
        else endpoints.delete(endpointId)
        if (open.visits > 0) return
        units.delete(unitId)
        if (told.has(unitId) || isTelling) void tell()
      }
    },
    resend: () => {
      told = new Map()
    },
    run: async (signal) =>
      await runLoop(
        { name: 'long sessions', everyMs: LONG_AFTER_MS, timeoutMs: 15 * SECOND, run: tell },
        { clock, log, signal },
      ),
  }
}

function isSame(some: Lasting, others: Lasting): boolean {
  return some.size === others.size && [...some].every(([id, at]) => others.get(id)?.join() === at.join())
}
