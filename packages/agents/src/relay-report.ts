// How the calls that reach a unit by a relay get into the audit log: a bounded number of rows, however many there are.

import type { Contract } from '../../sdk/src/index.ts'
import type { RelayCall } from './relay.ts'

type Told = Contract.UnitCalls['calls'][number]

/** How often a report is written: soon where it is full, else after a while. */
const EACH_MS = { full: 1000, else: 10_000 }
/** Of a report: calls as they were, and besides how often each other method was called. */
const MAX_CALLS = 20
const MAX_METHODS = 19

export type CallReport = {
  add: (call: RelayCall) => void
  /** Resolves once the last report is written, or was tried. */
  end: () => Promise<void>
}

/** @param say Is told once, until it is over, that reports cannot be written. Their calls are in the next one. */
export function createCallReport(
  write: (calls: Told[]) => Promise<void>,
  say: (error: unknown) => void,
  each: typeof EACH_MS = EACH_MS,
): CallReport {
  let calls = new Map<string, Told>()
  let writtenAt = performance.now()
  let writing: Promise<void> | null = null
  let isAway = false

  const add = (call: RelayCall, count = 1) => {
    const key = JSON.stringify(call)
    const methods = [...calls.values()].filter(({ cmd, path }) => !cmd && !path).length
    const hasDetail = call.cmd !== undefined || call.path !== undefined
    const isRoom = hasDetail ? calls.size - methods < MAX_CALLS : methods < MAX_METHODS
    const known = calls.get(key)
    if (known) known.count = (known.count ?? 1) + count
    else if (isRoom) calls.set(key, { ...call, count })
    else if (hasDetail) add({ method: call.method }, count)
    else if (call.method !== 'others')
      calls.set('others', { method: 'others', count: (calls.get('others')?.count ?? 0) + count })
  }
  const flush = async () => {
    if (calls.size === 0) return
    const told = [...calls.values()]
    calls = new Map()
    writtenAt = performance.now()
    try {
      await write(told)
      isAway = false
    } catch (error) {
      if (!isAway) say(error)
      isAway = true
      for (const { count = 1, ...call } of told) add(call, count)
    }
  }
  const look = () => {
    const isDue = calls.size >= MAX_CALLS || performance.now() - writtenAt >= each.else
    if (writing === null && isDue) writing = flush().finally(() => (writing = null))
  }
  const looking = setInterval(look, each.full)
  return {
    add,
    end: async () => {
      clearInterval(looking)
      await writing
      await flush()
    },
  }
}
