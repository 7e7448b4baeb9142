// Tells the engine what a process saw of machines: a second after it happened, a limited number of lines a second. What
// is on its way when the engine dies is lost, so that nothing is counted twice.

import { SECOND } from '../clock.ts'
import type { EgressLink } from './link-client.ts'
import { SEEN_AT_ONCE, type SeenLine } from './seen.ts'
import { createTally } from './tally.ts'

const EVERY_MS = SECOND
const BOUNDS = { linesPerMinute: 40, lines: 10_000 } as const

export type Telling = {
  /** Returns the line in which it is counted, so that its bytes can be added later. */
  note: (machine: string, line: SeenLine) => SeenLine
  /** Tells what is left, if the engine is there. */
  close(): Promise<void>
}

export function createTelling(link: () => Pick<EgressLink, 'isWhole' | 'tellSeen'>): Telling {
  const tally = createTally(BOUNDS)
  let timer: NodeJS.Timeout | null = null

  const tell = async () => {
    if (link().isWhole())
      await link()
        .tellSeen(tally.take(SEEN_AT_ONCE))
        .catch(() => {})
  }
  const tellLater = () => {
    timer ??= setTimeout(() => {
      void tell().then(() => {
        timer = null
        if (tally.size() > 0) tellLater()
      })
    }, EVERY_MS).unref()
  }

  return {
    note(machine, line) {
      const counted = tally.add(machine, line)
      tellLater()
      return counted
    },
    async close() {
      if (timer !== null) clearTimeout(timer)
      if (tally.size() > 0) await tell()
    },
  }
}
