// Sums up what machines reached and were refused, until the sums are sent. A machine may ask for a million names: it has
// a limited number of lines a minute, and one line for the rest of that minute.

import type { MachineSeen, SeenLine } from './seen.ts'

export type TallyBounds = {
  /** Of one machine. */
  linesPerMinute: number
  /** Lines of all machines that wait to be sent. */
  lines: number
}

export type Tally = {
  /** Adds to the line of the same kind. Returns the line that it is counted in, without sums. */
  add(machine: string, line: SeenLine): SeenLine
  /** Removes the oldest lines and returns them. */
  take(most: number): MachineSeen[]
  size(): number
}

export function createTally(bounds: TallyBounds): Tally {
  const waiting = new Map<string, MachineSeen>()
  /** The lines of the newest minute, also those that have been taken. */
  const begun = new Map<string, Set<string>>()
  let newest = 0

  const hasLine = (machine: string, line: SeenLine): boolean => {
    const key = keyOf(machine, line)
    if (line.minute > newest) {
      newest = line.minute
      begun.clear()
    }
    // The end of a connection, whose line was begun with it.
    if (line.minute < newest) return waiting.has(key) || waiting.size < bounds.lines
    const own = begun.get(machine) ?? new Set()
    begun.set(machine, own)
    if (own.has(key)) return true
    if (own.size >= bounds.linesPerMinute || waiting.size >= bounds.lines) return false
    own.add(key)
    return true
  }

  return {
    add(machine, line) {
      const kind = hasLine(machine, line) ? line : { ...line, ...others }
      const key = keyOf(machine, kind)
      const before = waiting.get(key)
      if (before) addTo(before, kind)
      else if (waiting.size < 2 * bounds.lines) waiting.set(key, { ...kind, machine })
      return { ...kind, bytesIn: 0, bytesOut: 0, count: 0 }
    },
    take(most) {
      const taken: MachineSeen[] = []
      for (const [key, line] of waiting) {
        if (taken.length >= most) break
        waiting.delete(key)
        taken.push(line)
      }
      return taken
    },
    size: () => waiting.size,
  }
}

const others = { host: null, address: null, port: null, reason: 'others', rule: null, secret: null } as const

function addTo(line: MachineSeen, more: SeenLine): void {
  line.address = more.address ?? line.address
  line.bytesIn += more.bytesIn
  line.bytesOut += more.bytesOut
  line.count += more.count
}

function keyOf(machine: string, line: SeenLine): string {
  const { minute, host, port, protocol, decision, reason, rule, secret } = line
  return JSON.stringify([machine, minute, host, port, protocol, decision, reason, rule, secret])
}
