// `npm run hosts -- list`: the hosts of this Berth, and what to do about each.

import type { Kysely } from 'kysely'
import { DAY, SECOND } from '../lib/clock.ts'
import type { Database } from '../store/db.ts'
import { countUnitsByHost, type HostRecord, listHosts } from '../store/hosts.ts'
import { HOST_TAKEN_OVER } from '../domain/hosts/away.ts'
import type { Block } from '../supervisor/join/blocks.ts'
import { formatTable, printable } from './table.ts'

/** Longer than three heartbeats. */
const SILENT_MS = 20 * SECOND

/** Returns the lines to print. `blocks`: of the hosts that have joined, and of this machine. */
export async function tableOfHosts(db: Kysely<Database>, now: Date, blocks: Block[]): Promise<string[]> {
  const [hosts, units] = [await listHosts(db), await countUnitsByHost(db)]
  const rows = hosts.map((host) => {
    const count = units.get(host.id) ?? 0
    return [
      printable(host.name),
      host.awaySince && host.state !== 'lost' ? 'away' : host.state,
      host.region ?? '-',
      host.address ?? 'this machine',
      blocks.find(({ instance }) => instance === host.instance)?.subnet ?? '-',
      String(count),
      host.availableMb === null ? '-' : `${host.availableMb} of ${host.memoryMb} MB`,
      clockOf(host),
      certificatesOf(host, now),
      host.seenAt === null ? 'never' : `${secondsSince(host, now)} s ago`,
      host.id,
      nextStep(host, count, now),
    ]
  })
  const known = new Set(hosts.map(({ instance }) => instance))
  rows.push(...blocks.filter(({ instance }) => !known.has(instance)).map(rowOfUnknown))
  return formatTable([
    [
      'host',
      'state',
      'region',
      'engine',
      'addresses',
      'units',
      'free memory',
      'clock',
      'certificates',
      'seen',
      'id',
      'what to do',
    ],
    ...rows,
  ])
}

/** Two years before the authority ends, and one before another takes its place. */
const ADVICE_MS = 730 * DAY

/** Lines below the table. Null: there is no authority. */
export function adviceOnAuthority(times: { endsAt: Date; replacedFrom: Date } | null, now: Date): string[] {
  if (!times || times.endsAt.getTime() - now.getTime() > ADVICE_MS) return []
  const [ends, from] = [times.endsAt, times.replacedFrom].map((date) => date.toISOString().slice(0, 10))
  return [
    '',
    `The authority of these certificates ends on ${ends}. From ${from} on another one takes its place, and each host then has to join again (npm run hosts -- join-token).`,
  ]
}

/** As after a backup from before it joined was restored. */
function rowOfUnknown({ name, subnet }: Block): string[] {
  const what = 'the database does not know it: join it again (npm run hosts -- join-token)'
  return [printable(name), 'unknown', '-', '-', subnet, '0', '-', '-', '-', 'never', '-', what]
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

function nextStep(host: HostRecord, units: number, now: Date): string {
  if (host.state === 'removed') return 'nothing'
  if (host.state === 'lost')
    return units === 0 ? 'npm run hosts -- remove' : 'destroy its units, and make them anew'
  const certificates = stepOfCertificates(host, now)
  if (certificates !== null) return certificates
  if (host.awaySince && host.reason === HOST_TAKEN_OVER)
    return `${host.reason}: end the other server, or, if there is none, npm run hosts -- reclaim ${printable(host.name)}`
  if (host.state === 'joining')
    return `start Berth on it with BERTH_ROLE=host, and let this machine reach ${host.address ?? 'it'}`
  if (host.awaySince)
    return `${host.reason === null ? '' : `${printable(host.reason)}: `}bring it back, or say that it is lost`
  if (host.state === 'draining')
    return units === 0 && host.address !== null
      ? 'npm run hosts -- remove'
      : 'wait until its units are destroyed, or undrain it'
  if (secondsSince(host, now) * SECOND <= SILENT_MS) return 'nothing'
  if (units === 0) return 'nothing: it has no units'
  return 'start Berth on its data directory; its units cannot be used until then'
}
