// What the server's gauges say, read at a scrape: the database's and what each host says (server-metrics.ts).

import type { App } from '../app.ts'
import type { Capabilities, ReadyMachinesStatus } from '../engine/engine.ts'
import type { FleetHost } from '../engine/fleet.ts'
import { SECOND } from '../lib/clock.ts'
import { type Gauges, readGauges } from '../store/gauges.ts'
import { countUnitsByHost } from '../store/hosts.ts'
import { countHostsWanted, type HostLoad } from './hosts-wanted.ts'

/** Timeout of reading the gauges; longer than it takes on a healthy service. */
export const LOOK_MS = 5 * SECOND

/** A healthy service writes a heartbeat every five seconds. */
export const FRESH_MS = 60 * SECOND

type HostLook = {
  name: string
  state: 'ready' | 'draining' | 'away' | 'lost'
  answers: boolean
  awaySince: Date | null
  ready: ReadyMachinesStatus | null
  facts: Pick<FleetHost, 'capacity' | 'clockOffsetMs' | 'certificatesEnd'>
  /** Whether its gateway is connected; null for the server's own host, and where gateways of others have no address. */
  gateway: boolean | null
  /** Of each isolation class, what runs its units, or why none can; null if the host has never said it. */
  classes: Record<string, string> | null
  /** Null where there is one host, whose units are all. */
  units: number | null
}

export type Look = {
  gauges: Gauges | null
  /** The server's own first, if it has one. */
  hosts: HostLook[]
  hasOwn: boolean
  /** Null where there is one host, and while none has said what memory it has. */
  wanted: number | null
}

export const nothingKnown: Look = { gauges: null, hosts: [], hasOwn: false, wanted: null }

/** Reads the database and the engines, the server's own first; any of them may be unavailable. */
export async function lookAt(app: App): Promise<Look> {
  const { config, db, fleet, clock, connectedGateways } = app
  const local = fleet.findLocal()
  const others = fleet.hosts().filter((host) => host !== local)
  const [gauges, capacity, capabilities, units] = await Promise.all([
    readGauges(db, clock.now()).catch(() => null),
    local?.engine.capacity().catch(() => null) ?? null,
    local?.engine.capabilities().catch(() => null) ?? null,
    others.length > 0 ? countUnitsByHost(db).catch(() => null) : null,
  ])
  // What runs units may be another program than at the start (engine/oci/lifecycle/build-for-new-runs.ts).
  if (local && capabilities) app.capabilities.set(local.id, capabilities)
  const lookAtHost = (host: FleetHost): HostLook => ({
    name: host.name,
    state: stateOf(host),
    answers: host.awaySince === null,
    awaySince: host.awaySince,
    ready: host.capacity?.readyMachines ?? null,
    facts: host,
    gateway: host === local || !config.hostsAddress ? null : connectedGateways.has(host.id),
    classes: classesOf(app.capabilities.get(host.id)),
    units: units === null ? null : (units.get(host.id) ?? 0),
  })
  // Others are asked every two seconds anyway (domain/units/watch-hosts.ts), and one that hangs holds up nothing here.
  const own = local ? [{ ...lookAtHost({ ...local, capacity }), answers: capacity !== null }] : []
  const loads = await Promise.all(fleet.hosts().map(async (host) => await loadOf(app, host)))
  const wanted = others.length > 0 ? countHostsWanted(loads.filter((load) => load !== null)) : null
  return { gauges, hosts: [...own, ...others.map(lookAtHost)], hasOwn: local !== null, wanted }
}

/** Null for a host that takes no new units, or has not said what memory it has. */
async function loadOf(app: App, host: FleetHost): Promise<HostLoad | null> {
  const { capacity, promised } = host
  if (!capacity || stateOf(host) !== 'ready') return null
  const nowMs = app.clock.monotonicMs()
  const isOpen = promised.filter(({ untilMs }) => untilMs > nowMs)
  const promisedMb = isOpen.reduce((sum, { memoryMb }) => sum + memoryMb, 0)
  const { memoryMb, availableMemoryMb, disk } = capacity
  const starts = app.coldStarts(host.id)
  return {
    memoryMb,
    usedMb: memoryMb - availableMemoryMb + promisedMb,
    disk: disk ? { gb: disk.gb, usedGb: disk.gb - disk.freeGb } : null,
    waiting: starts.waiting(),
    hasRoom: host.refusedUntilMs <= nowMs && (await starts.hasCapacity()),
  }
}

function classesOf(known: Capabilities | undefined): HostLook['classes'] {
  return known ? Object.fromEntries(known.classes.map(({ class: name, detail }) => [name, detail])) : null
}

function stateOf({ isLost, awaySince, isDraining }: FleetHost): HostLook['state'] {
  if (isLost) return 'lost'
  if (awaySince !== null) return 'away'
  return isDraining ? 'draining' : 'ready'
}
