// Looks after the hosts of other machines: it calls those that the operator has added, finds those that do not answer, and
// takes back those that do again. Away is not lost: units of a host that is away stay as they are, and only the operator
// says that it will not come back (decisions/hosts.md). The server's own host needs none of this.

import type { App } from '../../app.ts'
import type { FleetHost } from '../../engine/fleet.ts'
import { MINUTE, SECOND } from '../../lib/clock.ts'
import { completesWithin } from '../../lib/concurrency/completes-within.ts'
import { reasonOfCertificate, reasonToBeAway } from '../hosts/away.ts'
import { askFacts, saveFacts } from '../hosts/facts.ts'
import { tellTeamsOfHosts } from '../hosts/tell-teams.ts'
import { type HostRecord, listHosts, setHostAway, setHostState } from '../../store/hosts.ts'
import { listUnitsOfHost } from '../../store/units-of-jobs.ts'
import { noteOutage } from '../time/heartbeat.ts'
import { destroyQuietly } from './destroy.ts'
import { recoverHost, reconcileHost } from './reconcile.ts'

/** Six rounds, so that fifteen seconds after its last answer a host is away, whatever else the server does. */
const SILENT_FOR_MS = 12 * SECOND
const HELLO_MS = 5 * SECOND
const STORE_EVERY_MS = 10 * SECOND
/** Of a host that was given up, in one round. */
const DESTROYED_AT_ONCE = 20
/** Its machines are compared with the rows of its units. */
const RECOVER_MS = 2 * MINUTE

/** One run of the background job. */
export async function watchHosts(app: App): Promise<void> {
  const local = app.fleet.findLocal()
  const hosts = await listHosts(app.db)
  await tellTeamsOfHosts(app, hosts)
  const others = hosts.filter(({ id }) => id !== local?.id)
  if (local) local.isDraining = hosts.some(({ id, state }) => id === local.id && state === 'draining')
  await Promise.all(
    others.map((record) =>
      watchHost(app, record, hosts).catch((error: unknown) => {
        app.log.warn({ err: error, host: record.name }, 'host is not looked after; will be retried')
      }),
    ),
  )
  if (others.length > 0) await storeFacts(app)
}

const MEET_MS = 2 * SECOND
const MEET_LOOK_MS = 20

/**
 * Call it once before the first call, of a server without an engine: its hosts that answered the last server do so again, or
 * soon will be away.
 */
export async function meetHosts(app: App): Promise<void> {
  await watchHosts(app)
  const known = (await listHosts(app.db)).filter(
    ({ awaySince, address, state }) => awaySince === null && address !== null && state !== 'joining',
  )
  const giveUpMs = app.clock.monotonicMs() + MEET_MS
  const isMissing = ({ id }: HostRecord) => (app.fleet.find(id)?.awaySince ?? null) !== null
  while (known.some(isMissing) && app.clock.monotonicMs() < giveUpMs) await app.clock.sleep(MEET_LOOK_MS)
}

async function storeFacts(app: App): Promise<void> {
  const local = app.fleet.findLocal()
  if (local) local.capacity = (await app.capacityOf(local.id)()) ?? local.capacity
  const nowMs = app.clock.monotonicMs()
  const due = app.fleet
    .hosts()
    .filter(({ awaySince, storedMs }) => awaySince === null && nowMs - storedMs >= STORE_EVERY_MS)
  for (const host of due) host.storedMs = nowMs
  await saveFacts(app, due)
}

async function watchHost(app: App, record: HostRecord, hosts: HostRecord[]): Promise<void> {
  if (record.state === 'removed') return app.fleet.remove(record.id)
  if (record.state === 'lost') return giveUp(app, record)
  const { address } = record
  // The data directory of another machine, which is not on the network.
  if (address === null) return app.fleet.noteAbsent(record.id, record.seenAt ?? app.clock.now())
  const known = app.fleet.find(record.id)
  // It may have joined again: elsewhere, or after it was given up.
  const isSame = known?.address === address && !known.isLost
  const host = isSame ? known : app.fleet.open({ ...record, address }, record.awaySince ?? app.clock.now())
  host.isDraining = record.state === 'draining'
  // Not awaited: a host that hangs must not hold up the others.
  const hello = () => sayHello(app, host, record, hosts)
  app.activity.operations.run(`hello ${host.id}`, RECOVER_MS, hello).catch((error: unknown) => {
    app.log.debug({ err: error, host: host.name }, 'host does not answer')
  })
  const nowMs = app.clock.monotonicMs()
  // While this server itself was suspended, no host was asked.
  const unwatchedMs = nowMs - host.watchedMs
  if (unwatchedMs > HELLO_MS) host.answeredMs += unwatchedMs
  host.watchedMs = nowMs
  const silentMs = nowMs - host.answeredMs
  // The server may have begun after it went away.
  const isNoted = record.awaySince !== null || record.state === 'joining'
  if ((host.awaySince === null || !isNoted) && silentMs > SILENT_FOR_MS)
    await setAway(app, host, { silentMs, reason: NO_ANSWER })
}

/** Its units can be destroyed from then on, and are where the operator has said so. */
function giveUp(app: App, { destroysUnits, ...record }: HostRecord): void {
  app.fleet.giveUp(record)
  if (!destroysUnits) return
  // Not awaited, as above.
  const destroy = async () => {
    const of = { hostId: record.id, now: app.clock.now(), limit: DESTROYED_AT_ONCE }
    const units = await listUnitsOfHost(app.db, of)
    await Promise.all(units.map((unit) => destroyQuietly(app, unit)))
  }
  app.activity.operations
    .run(`destroy units of ${record.id}`, RECOVER_MS, destroy)
    .catch((error: unknown) => {
      app.log.warn(
        { err: error, host: record.name },
        'units of a lost host are not destroyed; will be retried',
      )
    })
}

async function sayHello(app: App, host: FleetHost, record: HostRecord, hosts: HostRecord[]): Promise<void> {
  if (!(await completesWithin(app.clock, HELLO_MS, checkFacts(app, host, record, hosts)))) return
  if (host.awaySince !== null) await takeBack(app, host, record)
  host.answeredMs = app.clock.monotonicMs()
  if (record.state === 'joining')
    await setHostState(app.db, { id: host.id, from: ['joining'], to: 'ready', at: app.clock.now() })
}

/**
 * Its units can be used once their machines are those that their rows say. From then on it has a heartbeat, so that no
 * unit there is billed without one.
 */
async function takeBack(app: App, host: FleetHost, { instance }: HostRecord): Promise<void> {
  // What an earlier attempt has sent must not arrive after this one: it knows fewer units.
  app.fleet.setAway(host, host.awaySince)
  const behind = { ...host, engine: host.unguarded }
  noteOutage(app, host)
  // Before anything is removed from it: from now on no other data directory can take its place.
  if (instance === null) await saveFacts(app, [host])
  await recoverHost(app, behind)
  await reconcileHost(app, behind)
  await setHostAway(app.db, { id: host.id, awaySince: null, reason: null, at: app.clock.now() })
  app.fleet.setAway(host, null)
  app.log.warn({ host: host.name }, 'host answers')
}

/** Throws, and no call reaches its engine, if it is not the host that is meant. */
async function checkFacts(app: App, host: FleetHost, record: HostRecord, hosts: HostRecord[]): Promise<void> {
  try {
    await askFacts(app, host, record, hosts)
  } catch (error) {
    // Something on the way may answer in its place for a moment, so that alone does not make it away.
    const reason = reasonToBeAway(error) ?? (host.awaySince === null ? null : reasonOfCertificate(error))
    if (reason === null) throw error
    if (host.awaySince === null || record.reason !== reason) await setAway(app, host, { silentMs: 0, reason })
    throw error
  }
}

const NO_ANSWER = 'its engine does not answer'

async function setAway(
  app: App,
  host: FleetHost,
  { silentMs, reason }: { silentMs: number; reason: string },
): Promise<void> {
  const awaySince = host.awaySince ?? new Date(app.clock.now().getTime() - silentMs)
  app.fleet.setAway(host, awaySince)
  noteOutage(app, host)
  app.log.error({ alarm: 'host', host: host.name, awaySince, reason }, 'host is away')
  await setHostAway(app.db, { id: host.id, awaySince, reason, at: app.clock.now() })
}
