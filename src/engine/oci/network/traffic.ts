// Counts packets between machines: packets from siblings are use, and wake sleeping units (design 4).
//
// The kernel counts them, in one element per pair, in a separate table: the other tables are loaded again at each
// start of an engine, and packets sent while none ran must not be lost. Its chain comes right after `enter` and
// `bound` (firewall-rules.ts): a machine sends only from its own address, and only to those of its group, running or not, that it
// may reach.
// Reading is a kernel query without a program, and costs next to nothing while nothing is sent: an element that
// counts nothing expires.
//
// TCP segments that neither carry data nor open a connection are not counted. Kernels send them on their own: if
// keepalives counted as use, two machines with an open connection would keep each other awake for ever, and the
// answer to a frozen machine's own keepalive would wake it.
//
// If in doubt, a packet is reported twice rather than not at all: the kernel of a frozen machine has acknowledged it,
// so it will not be sent again, and its sender waits.

import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../../lib/log.ts'
import type { Names } from './names.ts'
import { type Netfilter, openNetfilter } from './netfilter.ts'
import type { Counted } from './netlink.ts'
import { loadRuleset } from './expected-ruleset.ts'
import { applyRules, listRules } from './nft.ts'

/** The addresses of two machines. */
export type Pair = { from: string; to: string }

export type Traffic = {
  /** Creates the table, or what is missing of it; existing counts stay. */
  load(): Promise<void>
  /** Checks whether the table is unchanged. Returns true if it had to be restored. */
  keep(): Promise<boolean>
  /** Calls back until the signal aborts, a few times a second while packets are sent. */
  watch(onSent: (pairs: Pair[]) => void, signal: AbortSignal): Promise<void>
  close(): void
  remove(): Promise<void>
}

const SET = 'sent'
/** Shorter than the shortest idle window: an element is never older than the sleep of an idle machine. */
const REMEMBERED_FOR = '45s'
// Enough pairs for 250 machines that all talk to each other. Beyond that, packets pass uncounted.
const MAX_PAIRS = 65_535

const READ_EVERY_MS = 200
/** The pause after a reading, as a multiple of its duration, so that it takes a twentieth of a core; but … */
const PAUSE_FACTOR = 20
/** … machines that make readings long must not delay the reports of others by more than this. */
const LONGEST_PAUSE_MS = 1000

const TCP_HEADER_WORDS = [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]

/** Packets by pair. */
type Counts = Map<number, number>
/**
 * `before`: the counts at the last reading. Empty at first, because it is unknown what an earlier watcher reported.
 */
type Watcher = { onSent: (pairs: Pair[]) => void; before: Counts }

export function createTraffic(names: Names, rulesGeneration: () => number, log: Log): Traffic {
  const watchers = new Set<Watcher>()
  let reading = false
  let closed = false
  let lastSeen: Awaited<ReturnType<typeof loadRuleset>> = null

  const load = async () => {
    const commands = tableOf(names)
    const replace = async () => await applyRules([...removalOf(names), ...commands])
    // A set of another definition cannot be changed into ours, only replaced.
    const change = async () => await applyRules(commands).catch(replace)
    lastSeen = await loadRuleset(rulesGeneration, change, () => listTable(names))
  }

  const readWhileWatched = async () => {
    const netfilter = openNetfilter()
    let isFailing = false
    while (watchers.size > 0 && !closed) {
      const since = performance.now()
      try {
        await readOnce(names, netfilter, [...watchers])
        if (isFailing) log.info('packets between machines are counted again')
        isFailing = false
      } catch (error) {
        if (!isFailing) log.warn({ err: error }, 'packets between machines cannot be counted')
        isFailing = true
      }
      const pauseMs = PAUSE_FACTOR * (performance.now() - since)
      const boundedMs = Math.min(LONGEST_PAUSE_MS, Math.max(READ_EVERY_MS, pauseMs))
      await delay(boundedMs, undefined, { ref: false })
    }
    netfilter.close()
    reading = false
  }

  return {
    load,

    async keep() {
      const generation = rulesGeneration()
      if (generation === lastSeen?.generation) return false
      const rules = await listTable(names)
      if (lastSeen && rules === lastSeen.rules) {
        lastSeen = { generation, rules }
        return false
      }
      await load()
      return true
    },

    async watch(onSent, signal) {
      const tell = (pairs: Pair[]) => {
        if (!signal.aborted) onSent(pairs)
      }
      const watcher: Watcher = { onSent: tell, before: new Map() }
      watchers.add(watcher)
      if (!reading) {
        reading = true
        void readWhileWatched()
      }
      if (!signal.aborted) {
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      }
      watchers.delete(watcher)
    },

    close() {
      closed = true
    },

    async remove() {
      await applyRules(removalOf(names))
    },
  }
}

/** Reports to each watcher the pairs whose count has changed. */
async function readOnce({ table }: Names, netfilter: Netfilter, watchers: Watcher[]): Promise<void> {
  const now: Counts = new Map()
  const { isWhole } = await netfilter.readCounts({ table, set: SET }, (counted) => {
    for (const each of counted) now.set(keyOf(each), each.packets)
    for (const { before, onSent } of watchers) {
      const changed = counted.filter((each) => before.get(keyOf(each)) !== each.packets)
      if (changed.length > 0) onSent(changed.map(pairOf))
    }
  })
  for (const watcher of watchers) {
    // Counts missing from a partial answer are kept, or they would look new when they return.
    watcher.before = isWhole ? now : new Map([...watcher.before, ...now])
  }
}

/** In one subnet the lower halves of the addresses identify a pair. */
function keyOf({ source, target }: Counted): number {
  return (source & 0xffff) * 0x10000 + (target & 0xffff)
}

function pairOf({ source, target }: Counted): Pair {
  return { from: addressOf(source), to: addressOf(target) }
}

function addressOf(number: number): string {
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 0xff).join('.')
}

/** Repeating these commands leaves the set unchanged. */
function tableOf({ table, subnet, gateway, interfacePrefix }: Names): string[] {
  const rule = `add rule ip ${table}`
  return [
    `add table ip ${table}`,
    `add set ip ${table} ${SET} { type ipv4_addr . ipv4_addr; flags dynamic,timeout; timeout ${REMEMBERED_FOR}; size ${MAX_PAIRS}; }`,
    `add chain ip ${table} machines { type filter hook prerouting priority -149; policy accept; }`,
    `add chain ip ${table} packets`,
    `add chain ip ${table} short_segments`,
    `flush table ip ${table}`,
    `${rule} machines iifname "${interfacePrefix}*" ip daddr ${subnet} ip daddr != ${gateway} jump packets`,
    `${rule} packets ip hdrlength 5 tcp flags & syn == 0 ip length <= 80 jump short_segments`,
    `${rule} packets update @${SET} { ip saddr . ip daddr counter }`,
    // One rule for each header length (in words): nft 1.0.6 cannot list a set with both.
    ...TCP_HEADER_WORDS.map(
      (words) => `${rule} short_segments tcp doff ${words} ip length ${20 + 4 * words} accept`,
    ),
  ]
}

function removalOf({ table }: Names): string[] {
  return [`add table ip ${table}`, `delete table ip ${table}`]
}

/** Returns chain and rule without the set's elements, which can be many; null if they do not exist. */
async function listTable({ table }: Names): Promise<string | null> {
  const { exitCode, stdout } = await listRules(['--terse', 'list', 'table', 'ip', table])
  return exitCode === 0 ? stdout : null
}
