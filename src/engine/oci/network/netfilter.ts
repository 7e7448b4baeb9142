// Asks the kernel for its rules and changes some of them through sockets of this process: a query five times a second must
// not start a program each time, nor must a machine's start or end wait for one. All other changes are made with nft.
//
// A change waits for one that another program makes, so it is sent by a thread of its own.

import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  askForElements,
  askForGeneration,
  type Change,
  type Counted,
  readElements,
  readGeneration,
  readVerdict,
  requestChanges,
} from './netlink.ts'
import { openSocket } from './netlink-socket.ts'

/** The kernel puts at most 32 KB into one part. */
const PART_BYTES = 64 * 1024
const VERDICT_BYTES = 16 * 1024
/** Other work of this process runs after this time. */
const TURN_MS = 1

/** For one user at a time. */
export type Netfilter = {
  /**
   * Returns a number that each change of this network namespace's rules raises by one, but for those of `change`. One that
   * is asked for while `change` is at work may count that as well. Packets do not change it.
   */
  generation: () => number
  /**
   * Passes on the elements of a set of the family `ip`, part by part. If the result is not `whole`, rules were
   * changed meanwhile and some elements may be missing.
   */
  readCounts(
    set: { table: string; set: string },
    onPart: (counted: Counted[]) => void,
  ): Promise<{ isWhole: boolean }>
  /**
   * Changes elements of a table of the family `inet`, and chains of one of the same name of `netdev`, all or none. Returns
   * false if the kernel refused; nft then says why.
   */
  change(table: string, changes: Change[]): Promise<boolean>
  close(): void
}

export function openNetfilter(): Netfilter {
  const asking = openSocket(PART_BYTES)
  /** Of its own: a query may come while a change waits. */
  const changing = openSocket(VERDICT_BYTES)
  /** The kernel's number, as it was last seen; null: it was not. */
  let seen: number | null = null
  let others = 0

  const latest = (): number => {
    try {
      asking.send(askForGeneration())
      return readGeneration(asking.receive())
    } catch (error) {
      asking.close()
      throw error
    }
  }

  /** Counts what has changed. It never goes back, so that no two states of the rules have one number. */
  const look = (own = 0) => {
    const now = latest()
    others += seen === null ? now : Math.max(0, ((now - seen) >>> 0) - own)
    seen = now
  }

  return {
    generation() {
      look()
      return others
    },

    async readCounts(set, onPart) {
      let isWhole = true
      let turnSince = performance.now()
      try {
        asking.send(askForElements(set))
        for (;;) {
          const { counted, isLast, isDisturbed } = readElements(asking.receive())
          if (isDisturbed) isWhole = false
          if (counted.length > 0) onPart(counted)
          if (isLast) return { isWhole }
          if (performance.now() - turnSince < TURN_MS) continue
          await nextTurn()
          turnSince = performance.now()
        }
      } catch (error) {
        asking.close()
        throw error
      }
    },

    async change(table, changes) {
      try {
        look()
        const before = seen
        await changing.sendOnThread(requestChanges(table, changes))
        readVerdict(changing.receive())
        // If a change was seen while ours was under way, it may have been ours: it is not counted again.
        look(seen === before ? 1 : 0)
        return true
      } catch {
        changing.close()
        return false
      }
    },

    close() {
      asking.close()
      changing.close()
    },
  }
}
