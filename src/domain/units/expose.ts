// POST /v1/units/{id}/expose: publishes a unit at a URL or a TCP endpoint (spec 4.2, design 5). It is a use, so it
// wakes the unit; a stopped unit is published and stays stopped.
//
// A process is restarted if something it was started with has changed: the port of its URL, or its host in
// {{self:host}}.

import { noteChanged } from '../transactions/changes.ts'
import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import type { Expose, Exposed } from '../../contract/endpoint.ts'
import type { Database } from '../../store/db.ts'
import { takePort } from '../../store/endpoint-ports.ts'
import { type EndpointRecord, insertEndpoint, moveEndpoint, retireEndpoint } from '../../store/endpoints.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnit, lockUnit } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import { urlOf } from '../endpoints/address.ts'
import { type Choice, choose, isUrl } from '../endpoints/choose.ts'
import { gatewayOf } from '../endpoints/gateways.ts'
import { newEndpoint } from '../endpoints/name.ts'
import { inTransaction } from '../transactions/transactions.ts'
import { shedLoad } from './lifecycle/cold-starts.ts'
import { usesOwnHost } from './model/env.ts'
import { notPossibleNow } from './lifecycle/failures.ts'
import { getRecord } from './get.ts'
import { useUnit } from './activity/use-unit.ts'
import { restartOperation } from './lifecycle/run.ts'
import { retryOnConflict } from './lifecycle/retry-on-conflict.ts'
import { waitUntilStable } from './lifecycle/wait-until-stable.ts'
import { transition } from './lifecycle/transition.ts'
import { runOperation } from './lifecycle/operation.ts'

const REFUSED = 'it cannot be published'

export async function exposeUnit(app: App, caller: Caller, id: string, body: Expose): Promise<Exposed> {
  const exposed = await retryOnConflict(async () => {
    const unit = await waitUntilStable(app, caller, id)
    // Checked before the unit is woken in vain.
    choose(unit, body)
    const work = () => publish(app, unit, body)
    return unit.state === 'stopped' ? await work() : await useUnit(app, caller, id, REFUSED, work)
  })
  if (exposed === null) throw notPossibleNow(await getRecord(app, caller, id), REFUSED)
  return exposed
}

/** Returns null if the unit is in a transitional state. */
async function publish(app: App, found: UnitRecord, body: Expose): Promise<Exposed | null> {
  const { id, teamId } = found
  const published = await inTransaction(app, async (db) => {
    await lockUnit(db, id)
    const unit = await findUnit(db, { teamId, id, now: app.clock.now() })
    if (unit?.state !== 'running' && unit?.state !== 'stopped') return null
    const choice = choose(unit, body)
    const restarts = unit.state === 'running' && outdates(unit, choice)
    if (restarts) shedLoad(app, unit)
    const endpoint = await write(app, db, unit, choice)
    noteChanged(app, db, teamId)
    return {
      choice,
      endpoint,
      restarting: restarts ? await transition(app, unit, 'restart', { db }) : null,
    }
  })
  if (published === null) return null
  const { choice, endpoint, restarting } = published
  if (restarting) await runOperation(app, restarting, restartOperation)
  const { mode, port } = endpoint
  const warning = warningOf(choice, restarting !== null)
  return { url: urlOf(app, found, endpoint), mode, port, ...(warning === null ? {} : { warning }) }
}

/** Returns the endpoint after the change. */
async function write(
  app: App,
  db: Kysely<Database>,
  unit: UnitRecord,
  { current, needsName, moves, port, protocol, mode }: Choice,
): Promise<EndpointRecord> {
  if (current !== null && !needsName) {
    const moved = { ...current, port, protocol }
    if (moves) await moveEndpoint(db, moved)
    return moved
  }
  const at = app.clock.now()
  if (current !== null) await retireEndpoint(db, { id: current.id, at })
  const range = mode === 'public' && !isUrl(protocol) ? gatewayOf(app, unit).ports : null
  const gatewayPort = range && (await takePort(db, range))
  const row = newEndpoint(app.secretKey, unit, { port, protocol, mode, at, gatewayPort })
  await insertEndpoint(db, row)
  return { id: row.id, port, protocol, mode, name: row.name, sealedSecret: row.sealed_secret, gatewayPort }
}

/** Whether the running process was started with values that have changed. */
function outdates(unit: UnitRecord, { current, needsName, port, protocol }: Choice): boolean {
  if (!isUrl(protocol)) return false
  const leadsElsewhere = current !== null && current.port !== port
  return leadsElsewhere || (needsName && usesOwnHost(unit.spec.env))
}

function warningOf({ current, needsName, port }: Choice, restarted: boolean): string | null {
  const leadsElsewhere = current !== null && current.port !== port
  const sentences = [
    leadsElsewhere && `The endpoint now leads to port ${port} instead of port ${current.port}.`,
    current !== null && needsName && `The endpoint has a new address; the old one no longer works.`,
    restarted &&
      `The unit was restarted${leadsElsewhere ? '' : ' with its new host'}: everything in its memory is lost.`,
  ]
  const said = sentences.filter((sentence) => sentence !== false)
  return said.length === 0 ? null : said.join(' ')
}
