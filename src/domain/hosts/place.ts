// Chooses the host of new units (decisions/hosts.md). Units of one team are on one host, because the network of a team does
// not reach further yet. A new team goes to the best of three hosts that can have it, by free memory.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { unavailable } from '../../contract/errors.ts'
import { type IsolationClass, isolationClasses } from '../../engine/engine.ts'
import type { FleetHost } from '../../engine/fleet.ts'
import { SECOND } from '../../lib/clock.ts'
import type { Database } from '../../store/db.ts'
import { findPlaceOfTeam } from '../../store/placement.ts'
import { hostAway } from './away.ts'

export type Newcomers = { teamId: string; memoryMb: number; largestVolumeGb: number; images: string[] }

const CANDIDATES = 3
const WITH_IMAGES = 2
const TRIES = 3
const TRY_AGAIN_S = 10
/** How long a host that has no room is left out. */
const REFUSED_MS = 5 * SECOND
/** By then its machines are there, and show in its free memory. */
const PROMISED_MS = 15 * SECOND

/** Throws 503 with the reason and the time to wait if no host can have them now. */
export async function chooseHost(app: App, newcomers: Newcomers): Promise<FleetHost> {
  const local = app.fleet.findLocal()
  if (local && app.fleet.hosts().length === 1) return local
  const { own, region } = await findPlace(app, app.db, newcomers.teamId)
  if (own) return checkOpen(own)
  const able = hostsAble(app, region)
  if (able.length === 0) throw noHost(app, region)
  for (let left = TRIES; left > 0; left -= 1) {
    const rested = able.filter(({ refusedUntilMs }) => refusedUntilMs <= app.clock.monotonicMs())
    const best =
      chosenBefore(app, rested, newcomers) ?? (await pickByMemory(app, draw(rested, CANDIDATES), newcomers))
    if (best === null) continue
    const host = chosenBefore(app, rested, newcomers) ?? best
    promise(app, host, newcomers)
    return host
  }
  const which = able.length === 1 ? 'The host has no' : `None of the ${able.length} hosts has`
  throw unavailable(
    `${which} memory to spare for another unit; try again in ${TRY_AGAIN_S} s, or put other units to sleep.`,
    TRY_AGAIN_S,
  )
}

/** For a unit that its host refused: null if no other host of its class has room now. */
export async function chooseOtherHost(
  app: App,
  newcomers: Newcomers,
  { isolation, tried }: { isolation: IsolationClass; tried: string[] },
): Promise<FleetHost | null> {
  const { region } = await findPlace(app, app.db, newcomers.teamId)
  const nowMs = app.clock.monotonicMs()
  const able = hostsAble(app, region).filter((host) => {
    const isRested = host.refusedUntilMs <= nowMs && !tried.includes(host.id)
    return isRested && classOf(app, host) === isolation
  })
  const best = await pickByMemory(app, draw(able, CANDIDATES), newcomers)
  if (best) promise(app, best, newcomers)
  return best
}

function promise(app: App, host: FleetHost, { teamId, memoryMb }: Newcomers): void {
  host.promised.push({ teamId, memoryMb, untilMs: app.clock.monotonicMs() + PROMISED_MS })
}

/** Of several first creates of a team at once, the later ones go where the first one goes: only one host can have them. */
function chosenBefore(app: App, hosts: FleetHost[], { teamId }: Newcomers): FleetHost | null {
  const nowMs = app.clock.monotonicMs()
  const isFor = (each: FleetHost['promised'][number]) => each.teamId === teamId && each.untilMs > nowMs
  return hosts.find(({ promised }) => promised.some(isFor)) ?? null
}

/** It has no room: new teams go elsewhere for a moment. */
export function leaveOut(app: App, host: FleetHost): void {
  host.refusedUntilMs = app.clock.monotonicMs() + REFUSED_MS
}

/** With the team locked: whether the team is still on this host, or on none. */
export async function isStillPlaced(
  app: App,
  db: Kysely<Database>,
  { teamId, host }: { teamId: string; host: FleetHost },
): Promise<boolean> {
  if (app.fleet.hosts().length === 1) return true
  const { own } = await findPlace(app, db, teamId)
  return own === null || own.id === host.id
}

async function findPlace(
  app: App,
  db: Kysely<Database>,
  teamId: string,
): Promise<{ own: FleetHost | null; region: string }> {
  const { hostIds, region } = await findPlaceOfTeam(db, teamId)
  const hosts = hostIds.map((id) => app.fleet.find(id))
  return { own: hosts.find((host) => host !== null && !host.isLost) ?? null, region }
}

/** Units of a team that is on a host go there or nowhere. */
function checkOpen(host: FleetHost): FleetHost {
  if (host.awaySince) throw hostAway(host.awaySince)
  if (!host.isDraining) return host
  throw unavailable(
    'The operator is emptying the host of this team, so it takes no new units. Those on it go on.',
    TRY_AGAIN_S,
  )
}

/** Those that units of this region can come to now. Each host is looked at a fixed number of times, however many there are. */
function hostsAble(app: App, region: string): FleetHost[] {
  const hosts = app.fleet.hosts()
  // Where no host names a region, a region is a label.
  const isRegional = hosts.some((each) => each.region !== null)
  const open = hosts.filter(({ awaySince, isDraining }) => !awaySince && !isDraining)
  // No unit is isolated less because of the host it comes to.
  const classes = new Set(open.map((host) => classOf(app, host)))
  const strongest = isolationClasses.find((each) => classes.has(each)) ?? null
  return open.filter((host) => (!isRegional || host.region === region) && classOf(app, host) === strongest)
}

function classOf(app: App, { id }: FleetHost): IsolationClass | null {
  return app.capabilities.get(id)?.defaultClass ?? null
}

function noHost(app: App, region: string): Error {
  const hosts = app.fleet.hosts()
  const away = hosts.filter(({ awaySince }) => awaySince !== null).length
  const draining = hosts.filter(({ isDraining }) => isDraining).length
  const inRegion = hosts.filter((host) => host.region === region).length
  const said = `${hosts.length} hosts, of which ${away} do not answer, ${draining} are being emptied, and ${inRegion} are in the region "${region}"`
  return unavailable(`No host can take this team's first unit: there are ${said}.`, TRY_AGAIN_S)
}

/** Null if none has room. Those without are left out for a moment. */
async function pickByMemory(
  app: App,
  hosts: FleetHost[],
  { largestVolumeGb, images }: Newcomers,
): Promise<FleetHost | null> {
  const asked = await Promise.all(
    hosts.map(async (host) => {
      const [capacity, hasRoom] = await Promise.all([
        app.capacityOf(host.id)(),
        app.coldStarts(host.id).hasCapacity(),
      ])
      if (!hasRoom) leaveOut(app, host)
      return { host, capacity, hasRoom }
    }),
  )
  const open = asked.filter(({ hasRoom }) => hasRoom)
  const fit = open.filter(({ capacity }) => capacity !== null && capacity.teamDiskGb >= largestVolumeGb)
  // A pull takes longer than a start among some more units: a host that has the images counts as twice as free.
  const memoryOf = ({ host, capacity }: (typeof open)[number]) => {
    // A host that does not answer soon may only be busy: it is taken if there is no other.
    if (capacity === null) return -Number.MAX_SAFE_INTEGER
    const freeMb = capacity.availableMemoryMb - promisedMb(app, host)
    return freeMb * (images.every((image) => host.images.has(image)) ? WITH_IMAGES : 1)
  }
  // A volume that fits nowhere is refused where it is checked, with the size that does.
  const [best] = (fit.length > 0 ? fit : open).toSorted((one, other) => memoryOf(other) - memoryOf(one))
  return best?.host ?? null
}

function promisedMb(app: App, host: FleetHost): number {
  const nowMs = app.clock.monotonicMs()
  host.promised = host.promised.filter(({ untilMs }) => untilMs > nowMs)
  return host.promised.reduce((sum, { memoryMb }) => sum + memoryMb, 0)
}

/** In random order: of equal hosts the first is taken, which must not be the same one each time. */
function draw<T>(all: T[], count: number): T[] {
  const left = [...all]
  const drawn: T[] = []
  while (left.length > 0 && drawn.length < count)
    drawn.push(...left.splice(Math.floor(Math.random() * left.length), 1))
  return drawn
}
