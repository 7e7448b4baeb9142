// While the egress process is starting or dead, machines whose connections it decides are refused by the kernel, and nothing
// sees what they tried. Their egress log says so instead, with one line a minute.

import { type MachineSeen, minuteOf } from '../../../lib/egress/seen.ts'
import { decidesByName, type Restricted } from './egress-link.ts'

export type Unserved = {
  /** Call it again and again. Returns the lines that are due now. */
  look(isServed: boolean, restricted: () => readonly Restricted[]): MachineSeen[]
}

export function createUnserved(now: () => Date): Unserved {
  /** The minute of the newest line of each machine, by its address; null while the process is there. */
  let told: Map<string, number> | null = null
  return {
    look(isServed, restricted) {
      if (isServed) {
        told = null
        return []
      }
      // The first look that finds none may be in the middle of an ordinary start, which takes a second or two.
      if (told === null) {
        told = new Map()
        return []
      }
      const minute = minuteOf(now())
      const before = told
      const due = restricted().filter(
        ({ address, egress }) => dependsOnProcess(egress) && before.get(address) !== minute,
      )
      for (const { address } of due) before.set(address, minute)
      return due.map(({ address }) => ({ ...line, minute, machine: address }))
    },
  }
}

/** What may reach no host is refused all the same. */
function dependsOnProcess(egress: Restricted['egress']): boolean {
  return decidesByName(egress) && egress.mode !== 'none'
}

/** No connection was counted. */
const line = {
  host: null,
  address: null,
  port: null,
  protocol: 'tls',
  decision: 'refused',
  reason: 'not_enforced',
  rule: null,
  secret: null,
  bytesIn: 0,
  bytesOut: 0,
  count: 0,
} as const
