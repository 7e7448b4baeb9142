// The hosts of this Berth, and what to do about each: for `npm run hosts -- list` and the page of hosts.

import type { Kysely } from 'kysely'
import { isolationClasses } from '../../engine/engine.ts'
import { DAY, SECOND } from '../../lib/clock.ts'
import { printable } from '../../lib/printable.ts'
import { VERSION } from '../../lib/version.ts'
import type { Database } from '../../store/db.ts'
import { countUnitsByHost, type HostRecord, listHosts } from '../../store/hosts.ts'
import { HOST_TAKEN_OVER } from './away.ts'

/** Longer than three heartbeats. */
const SILENT_MS = 20 * SECOND

/** In words, for people; names and reasons without control characters. */
export type HostLine = {
  id: string
  instance: string | null
  name: string
  state: string
  region: string
  engine: string
  units: number
  freeMemory: string
  clock: string
  certificates: string
  seen: string
  /** What the operator is to do; null: nothing. */
  advice: string | null
}

/** By name, without those that were removed. */
export async function describeHosts(db: Kysely<Database>, now: Date): Promise<HostLine[]> {
  const [hosts, units] = [await listHosts(db), await countUnitsByHost(db)]
  return hosts
    .filter(({ state }) => state !== 'removed')
    .map((host) => {
      const count = units.get(host.id) ?? 0
      return {
        id: host.id,
        instance: host.instance,
        name: printable(host.name),
        state: host.awaySince && host.state !== 'lost' ? 'away' : host.state,
        region: host.region ?? '-',
        engine: host.address ?? 'this machine',
        units: count,
        freeMemory: host.availableMb === null ? '-' : `${host.availableMb} of ${host.memoryMb} MB`,
        clock: clockOf(host),
        certificates: certificatesOf(host, now),
        seen: host.seenAt === null ? 'never' : `${secondsSince(host, now)} s ago`,
        advice: nextStep(host, count, now) ?? otherVersion(host) ?? weakness(host, hosts),
      }
    })
}

function clockOf({ clockOffsetMs }: HostRecord): string {
  if (clockOffsetMs === null) return '-'
  return `${clockOffsetMs < 0 ? '' : '+'}${(clockOffsetMs / SECOND).toFixed(1)} s`
}

/** They are renewed four months before their end. */
const LATE_MS = 60 * DAY

function certificatesOf({ certificatesEnd }: HostRecord, now: Date): string {
  if (certificatesEnd === null) return '-'
  return `${certificatesEnd > now ? 'until' : 'ended on'} ${certificatesEnd.toISOString().slice(0, 10)}`
}

/** Null: there is nothing to do about them. */
function stepOfCertificates({ name, certificatesEnd }: HostRecord, now: Date): string | null {
  const leftMs = certificatesEnd === null ? Infinity : certificatesEnd.getTime() - now.getTime()
  if (leftMs <= 0) return 'its certificates have ended: join it again (npm run hosts -- join-token)'
  if (leftMs > LATE_MS) return null
  return `its certificates are not renewed: npm run hosts -- log ${printable(name)} says why, or join it again`
}

function secondsSince({ seenAt }: HostRecord, now: Date): number {
  return seenAt === null ? Infinity : Math.max(0, Math.round((now.getTime() - seenAt.getTime()) / SECOND))
}

/** Null: nothing that its state asks for. */
function nextStep(host: HostRecord, units: number, now: Date): string | null {
  if (host.state === 'lost')
    return units === 0
      ? `npm run hosts -- remove ${printable(host.name)}`
      : `nothing: it can be removed once its teams have destroyed its units; npm run hosts -- remove ${printable(host.name)} says which teams, and how to do it for them`
  const certificates = stepOfCertificates(host, now)
  if (certificates !== null) return certificates
  if (host.awaySince && host.reason === HOST_TAKEN_OVER)
    return `${host.reason}: end the other server, or, if there is none, npm run hosts -- reclaim ${printable(host.name)}`
  if (host.state === 'joining')
    return `start Berth on it with BERTH_ROLE=host, and let this machine reach ${host.address ?? 'it'}`
  if (host.awaySince)
    return `${host.reason === null ? '' : `${printable(host.reason)}: `}bring it back, or, if it never comes back, npm run hosts -- lost ${printable(host.name)}`
  if (host.state === 'draining') return nextStepOfDrained(host, units)
  if (units === 0 || secondsSince(host, now) * SECOND <= SILENT_MS) return null
  return 'start Berth on its data directory; its units cannot be used until then'
}

function nextStepOfDrained({ name, address }: HostRecord, units: number): string {
  const undrain = `npm run hosts -- undrain ${printable(name)}`
  if (address === null) return `nothing: it takes units again after ${undrain}`
  if (units === 0) return `npm run hosts -- remove ${printable(name)}, or undrain it`
  return `nothing: it can be removed once its units are destroyed, and takes units again after ${undrain}`
}

/** As after an upgrade of this machine alone. Null if it is the same. */
function otherVersion({ version }: HostRecord): string | null {
  if (version === null || version === VERSION) return null
  return `it runs Berth ${printable(version)}, and this machine ${VERSION}: install the same there`
}

/** New teams go where isolation is strongest (decisions/hosts.md). Null if that is here too. */
function weakness({ name, classes }: HostRecord, hosts: HostRecord[]): string | null {
  const open = hosts.filter(({ state, awaySince }) => state === 'ready' && awaySince === null)
  const strongest = isolationClasses.find((each) => open.some((host) => host.classes?.[0] === each))
  const own = classes?.[0]
  if (own === undefined || strongest === undefined || own === strongest) return null
  return `no new teams while another host isolates by ${strongest}, and this one by ${own}: npm run doctor on ${printable(name)} says why`
}
