// Makes the lines of the egress log for the look-ups of restricted machines.

import { type EgressEntry, formatEgressEntry } from '../lib/egress/entry.ts'
import { entryForName } from '../lib/egress/rules.ts'
import { minuteOf, type SeenLine } from '../lib/egress/seen.ts'
import type { Query } from './query.ts'

const look = { protocol: 'dns', secret: null, bytesIn: 0, bytesOut: 0, count: 1 } as const

const beside: string[] = ['AAAA', 'HTTPS', 'SVCB', 'UNKNOWN_65', 'UNKNOWN_64']

/** Null for the questions that clients ask beside the one for an address: they would count it twice. */
export function lineOfRefusal(
  { name, question }: Query,
  reason: 'siblings' | 'not_listed',
  now: Date,
): SeenLine | null {
  if (beside.includes(question.type)) return null
  const nowhere = { address: null, port: null, rule: null }
  return { ...look, ...nowhere, minute: minuteOf(now), host: name, decision: 'refused', reason }
}

/** From now on the machine reaches the addresses of this name at this port. */
export function lineOfPin(
  { name }: Query,
  entries: readonly EgressEntry[],
  port: number,
  addresses: readonly string[],
  now: Date,
): SeenLine {
  const entry = entryForName(entries, name, port)
  const rule = entry === null ? null : formatEgressEntry(entry)
  const allowed = { decision: 'allowed', reason: 'listed' } as const
  return {
    ...look,
    ...allowed,
    minute: minuteOf(now),
    host: name,
    address: addresses[0] ?? null,
    port,
    rule,
  }
}
