// The client of the engine's egress link: follows the rules of machines across restarts of the engine. While the
// engine is unavailable nothing can change, so the known rules stay valid; `isWhole` says whether they are complete.

import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { openJsonLinesClient } from '../ipc/json-lines-rpc.ts'
import { type EgressEntry } from './entry.ts'
import {
  LINK_MAX_BYTES,
  type LinkEvent,
  linkMessage,
  PIN_DEADLINE_MS,
  SEEN_DEADLINE_MS,
} from './link-protocol.ts'
import { type EgressRules, parseAllowed } from './rules.ts'
import type { BrokeredSecret } from './secrets.ts'
import type { MachineSeen } from './seen.ts'

const AGAIN_MS = 100
const APPLIED_DEADLINE_MS = 2000

/** `entries`: what the rules allow; empty unless their mode is `listed`. */
export type KnownRules = {
  machine: string
  egress: EgressRules
  entries: readonly EgressEntry[]
  /** Null: it is not known. */
  team: number | null
  /** Without placeholders and values for those who need the hosts alone. */
  secrets: readonly BrokeredSecret[]
}

export type EgressLink = {
  /** The rules of the restricted machine with this address; null if there is none, or nothing is known for sure. */
  rulesOf(address: string): KnownRules | null
  isWhole(): boolean
  /** Lets the machine reach the addresses of a name. Resolves to false, or rejects, if it cannot. */
  pin(machine: string, name: string, addresses: string[]): Promise<boolean>
  /** Tells what machines reached and were refused, by their addresses. Rejects if the engine may not have it. */
  tellSeen(lines: MachineSeen[]): Promise<void>
  close(): Promise<void>
}

export type LinkWatcher = {
  /** The rules of a machine have changed: `null`, it is not restricted any more. */
  onRules?: (address: string, rules: KnownRules | null) => void
  onEnded?: (address: string) => void
  /** Returns the certificate of a team's authority. The engine gets it before rules with secrets are in force. */
  authorityOf?: (team: number) => Promise<string>
  /** The engine is away; the known rules are incomplete until `onWhole`. */
  onAway?: () => void
  /** With the addresses of all restricted machines. */
  onWhole?: (addresses: ReadonlySet<string>) => void
}

type Line = { id: number; answer?: unknown }

export function followEgressLink(socketPath: string, watcher: LinkWatcher = {}): EgressLink {
  const rules = new Map<string, KnownRules>()
  const stopped = new AbortController()
  let current: ReturnType<typeof open> | null = null
  let whole = false

  const open = () => {
    const socket = connect(socketPath)
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    /** The restricted machines of this connection's listing, until it is whole. */
    let listing: Set<string> | null = new Set()

    const take = (event: LinkEvent) => {
      if (event.event === 'whole') {
        const listed = listing ?? new Set()
        listing = null
        for (const address of rules.keys()) if (!listed.has(address)) forget(address)
        whole = true
        watcher.onWhole?.(listed)
      } else if (event.event === 'ended') {
        watcher.onEnded?.(event.address)
      } else if (event.egress === null) {
        forget(event.address)
      } else {
        listing?.add(event.address)
        const { machine, egress, team = null, secrets } = event
        const known = { machine, egress, entries: entriesOf(egress), team, secrets }
        if (team !== null && secrets.length > 0) authority(team)
        rules.set(event.address, known)
        watcher.onRules?.(event.address, known)
      }
      if (listing === null) void applied(event.version)
    }
    const said = new Map<number, Promise<unknown>>()
    const authority = (team: number) => {
      if (said.has(team) || !watcher.authorityOf) return
      const saying = watcher.authorityOf(team).then((certificate) => {
        const call = { operation: 'authority', request: { team, certificate } }
        return calls.call(call, APPLIED_DEADLINE_MS)
      })
      said.set(team, saying)
      // The next rules of the team try again; until then these are not in force.
      saying.catch(() => said.delete(team))
    }
    const forget = (address: string) => {
      rules.delete(address)
      watcher.onRules?.(address, null)
    }
    const hear = (line: string): Line | null => {
      const message = linkMessage.parse(JSON.parse(line))
      if (!('event' in message)) return message
      take(message)
      return null
    }
    const calls = openJsonLinesClient<object, Line>(socket, {
      mostBytes: LINK_MAX_BYTES,
      hear,
      late: () => new Error('the engine did not answer in time'),
      over: (cause) => cause ?? new Error('the connection to the engine ended'),
    })
    const applied = async (version: number) => {
      const call = { operation: 'applied', request: { version } }
      // An engine that is gone says everything again when it is back, and so does one that waits in vain.
      await Promise.all(said.values())
        .then(() => calls.call(call, APPLIED_DEADLINE_MS))
        .catch(() => {})
    }
    return { socket, closed, calls }
  }

  const follow = async () => {
    while (!stopped.signal.aborted) {
      current = open()
      await current.closed
      if (whole) watcher.onAway?.()
      whole = false
      await delay(AGAIN_MS, undefined, { signal: stopped.signal }).catch(() => {})
    }
  }
  const following = follow()

  return {
    rulesOf: (address) => (whole ? (rules.get(address) ?? null) : null),
    isWhole: () => whole,
    async pin(machine, name, addresses) {
      if (!current) return false
      const call = { operation: 'pin', request: { machine, name, addresses } }
      return (await current.calls.call(call, PIN_DEADLINE_MS)).answer === true
    },
    async tellSeen(lines) {
      await current?.calls.call({ operation: 'seen', request: { lines } }, SEEN_DEADLINE_MS)
    },
    async close() {
      stopped.abort()
      current?.socket.destroy()
      await following
    },
  }
}

function entriesOf({ mode, allow }: EgressRules): EgressEntry[] {
  return mode === 'listed' ? parseAllowed(allow) : []
}
