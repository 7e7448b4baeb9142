// What a sandbox may reach, in the words of this interface and as rules of egress. What has no counterpart is refused.

import { isIP } from 'node:net'
import { z } from 'zod'
import { validation } from '../../../contract/errors.ts'
import type { EgressAsked } from '../../../contract/egress.ts'
import {
  formatEgressEntry,
  InvalidEgressEntry,
  parseDeniedRange,
  type RangeEntry,
} from '../../../lib/egress/entry.ts'
import { notSupported } from '../errors.ts'

/** How this interface writes all addresses. */
export const EVERYWHERE = '0.0.0.0/0'

const entries = z.array(z.string().max(300)).max(128)

export const networkSchema = z.object({
  allowOut: entries.optional(),
  denyOut: entries.optional(),
  allowPublicTraffic: z.boolean().nullish(),
  rules: z.record(z.string(), z.unknown()).nullish(),
  egressProxy: z.record(z.string(), z.unknown()).nullish(),
  maskRequestHost: z.string().nullish(),
  httpsPorts: z.array(z.unknown()).nullish(),
})
export type Network = z.output<typeof networkSchema>

/** Null: what the credential and its team allow. */
export function egressOf(network: Network, internet: boolean | null | undefined): EgressAsked | null {
  refuseOthers(network)
  const { allowOut = [], denyOut = [] } = network
  const isClosed = internet === false || denyOut.includes(EVERYWHERE)
  const name = allowOut.find((entry) => isIP(entry.split('/')[0] ?? '') === 0)
  if (!isClosed && name !== undefined)
    throw validation([
      {
        path: 'network.denyOut',
        message: `must contain ${EVERYWHERE} where allowOut has names such as "${name}"`,
      },
    ])
  if (isClosed && !allowOut.includes(EVERYWHERE))
    return allowOut.length === 0 ? { mode: 'none' } : { mode: 'listed', allow: allowOut }
  const deny = allowOut.includes(EVERYWHERE) ? [] : deniedOf(denyOut, allowOut)
  if (internet !== true && deny.length === 0) return null
  return { ...(internet === true && { mode: 'open' }), ...(deny.length > 0 && { deny }) }
}

/** Sandboxes of one team belong to different people: none reaches another one, nor any unit of the team. */
export function apart(egress: EgressAsked | null): EgressAsked {
  return { ...egress, siblings: 'none' }
}

/** Here what is allowed goes before what is denied, and in our rules the other way round. */
function deniedOf(denyOut: string[], allowOut: string[]): string[] {
  const read = (path: string, each: string, at: number) => {
    try {
      return parseDeniedRange(each)
    } catch (error) {
      if (!(error instanceof InvalidEgressEntry)) throw error
      throw validation([{ path: `network.${path}.${at}`, message: error.message }])
    }
  }
  const holes = allowOut.map((each, at) => read('allowOut', each, at))
  return denyOut.flatMap((each, at) => without(read('denyOut', each, at), holes)).map(formatEgressEntry)
}

/** The parts of a range that are in none of the others. */
function without(range: RangeEntry, holes: readonly RangeEntry[]): RangeEntry[] {
  const inside = holes.filter(({ first, last }) => first <= range.last && range.first <= last)
  if (inside.length === 0) return [range]
  if (inside.some(({ first, last }) => first <= range.first && range.last <= last)) return []
  const middle = (range.first + range.last + 1) / 2
  const halves = [
    { ...range, last: middle - 1 },
    { ...range, first: middle },
  ]
  return halves.flatMap((half) => without(half, inside))
}

/** A single address is shown as clients write it. */
export function asWritten(entry: string): string {
  return entry.replace(/\/32$/, '')
}

function refuseOthers(network: Network): void {
  const { rules, egressProxy, httpsPorts } = network
  if (rules && Object.keys(rules).length > 0) throw notSupported('network.rules')
  if (egressProxy) throw notSupported('network.egressProxy')
  if (httpsPorts && httpsPorts.length > 0) throw notSupported('network.httpsPorts')
}
