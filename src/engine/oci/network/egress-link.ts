// Sends the egress rules of machines to the egress process and the resolver (lib/egress/link-protocol.ts), and waits
// until they have applied them.

import { X509Certificate } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { parseLine } from '../../../lib/ipc/call-lines.ts'
import { type JsonLinesServer, serveJsonLines } from '../../../lib/ipc/json-lines-rpc.ts'
import { type Listening, listenForGroup } from '../../../lib/ipc/unix-socket.ts'
import {
  LINK_MAX_BYTES,
  LINK_MAX_CALLS,
  LINK_MAX_UNREAD_BYTES,
  linkCall,
  type LinkEvent,
  linkOperations,
} from '../../../lib/egress/link-protocol.ts'
import type { Log } from '../../../lib/log.ts'
import type { MachineSeen } from '../../../lib/egress/seen.ts'
import type { MachineEgress } from '../../egress.ts'

/** The socket of the egress process and that of the resolver, each with the group that may connect. */
export type LinkSockets = Record<'rules' | 'names', { path: string; gid: number }>

/** `group`: its network group, which is its team's. */
export type Restricted = { address: string; machine: string; group: number; egress: MachineEgress }

export type EgressLink = {
  /** Resolves once all that listen go by it. Throws if one does not in time; it is disconnected then. */
  tell(change: Omit<Restricted, 'egress'> & { egress: MachineEgress | null }): Promise<void>
  /** Returns the certificate of a team's authority, in PEM; null if the egress process has not said it. */
  authorityOf(group: number): string | null
  /** The machine's run has ended. */
  tellEnded(address: string): void
  /** Resolves once the egress process listens, or after a while. */
  untilServed(): Promise<void>
  isServed(): boolean
  close(): Promise<void>
}

const APPLY_WITHIN_MS = 1000
const SERVED_WITHIN_MS = 10_000

type Listener = {
  kind: keyof LinkSockets
  lines: JsonLinesServer
  socket: Socket
  applied: number
  onApplied: Set<() => void>
}
type Unversioned = LinkEvent extends infer E ? (E extends LinkEvent ? Omit<E, 'version'> : never) : never

type Options = {
  sockets: LinkSockets
  restricted: () => Restricted[]
  pin: (machine: string, name: string, addresses: string[]) => Promise<boolean>
  /** `lines` are of machines by their addresses. */
  onSeen: (lines: MachineSeen[]) => void
  log: Log
}

export async function openEgressLink({
  sockets,
  restricted,
  pin,
  onSeen,
  log,
}: Options): Promise<EgressLink> {
  const listeners = { rules: new Set<Listener>(), names: new Set<Listener>() }
  const served = new Set<() => void>()
  const authorities = new Map<number, string>()
  let version = 0

  const all = () => [...listeners.rules, ...listeners.names]
  const say = ({ lines }: Listener, event: Unversioned) => lines.say(JSON.stringify({ ...event, version }))

  const accept = (kind: keyof LinkSockets, socket: Socket) => {
    socket.on('error', () => {})
    const answer = (line: string) => {
      const call = parseLine(linkCall, line)
      if (!call) return null
      if (call.operation === 'applied') {
        const said = linkOperations.applied.safeParse(call.request)
        if (said.success) listener.applied = Math.max(listener.applied, said.data.version)
        for (const tell of listener.onApplied) tell()
        return Promise.resolve({ id: call.id, answer: true })
      }
      if (call.operation === 'authority') {
        const said = linkOperations.authority.safeParse(call.request)
        const certificate = said.success && kind === 'rules' ? readCertificate(said.data.certificate) : null
        if (!said.success || certificate === null) return null
        authorities.set(said.data.team, certificate)
        return Promise.resolve({ id: call.id, answer: true })
      }
      if (call.operation === 'seen') {
        const seen = linkOperations.seen.safeParse(call.request)
        if (seen.success) onSeen(seen.data.lines)
        return seen.success ? Promise.resolve({ id: call.id, answer: true }) : null
      }
      const asked = linkOperations.pin.safeParse(call.request)
      if (!asked.success || kind !== 'names') return null
      const { machine, name, addresses } = asked.data
      return pin(machine, name, addresses).then(
        (pinned) => ({ id: call.id, answer: pinned }),
        (error: unknown) => {
          log.warn({ err: error }, 'an address could not be allowed')
          return { id: call.id, answer: false }
        },
      )
    }
    const bounds = {
      mostBytes: LINK_MAX_BYTES,
      mostUnreadBytes: LINK_MAX_UNREAD_BYTES,
      mostCalls: LINK_MAX_CALLS,
    }
    const lines = serveJsonLines(socket, { ...bounds, answer })
    const listener: Listener = { kind, lines, socket, applied: -1, onApplied: new Set() }
    listeners[kind].add(listener)
    socket.once('close', () => {
      listeners[kind].delete(listener)
      for (const tell of listener.onApplied) tell()
    })
    for (const each of restricted()) say(listener, rulesEvent(kind, each))
    say(listener, { event: 'whole' })
    listener.onApplied.add(() => {
      if (kind === 'rules' && listener.applied >= 0) for (const tell of served) tell()
    })
  }

  const untilApplied = async (listener: Listener, wanted: number) => {
    const done = Promise.withResolvers<void>()
    const look = () => {
      if (listener.applied >= wanted || listener.socket.destroyed) done.resolve()
    }
    listener.onApplied.add(look)
    look()
    const late = new AbortController()
    const inTime = await Promise.race([
      done.promise.then(() => true),
      delay(APPLY_WITHIN_MS, false, { signal: late.signal }).catch(() => false),
    ])
    late.abort()
    listener.onApplied.delete(look)
    if (inTime) return
    listener.socket.destroy()
    throw new Error('rules of egress were not put in force in time')
  }

  const isServed = () => [...listeners.rules].some(({ applied }) => applied >= 0)
  const open: [Server, Listening][] = []
  for (const kind of ['rules', 'names'] as const) {
    const server = createServer((socket) => accept(kind, socket))
    open.push([server, await listenForGroup(server, sockets[kind].path, sockets[kind].gid)])
  }

  return {
    async tell(change) {
      version += 1
      const wanted = version
      const listening = all()
      for (const each of listening) say(each, rulesEvent(each.kind, change))
      await Promise.all(listening.map((each) => untilApplied(each, wanted)))
    },
    tellEnded(address) {
      version += 1
      for (const each of all()) say(each, { event: 'ended', address })
    },
    async untilServed() {
      if (isServed()) return
      const done = Promise.withResolvers<void>()
      served.add(done.resolve)
      const waiting = new AbortController()
      await Promise.race([
        done.promise,
        delay(SERVED_WITHIN_MS, undefined, { signal: waiting.signal }).catch(() => {}),
      ])
      waiting.abort()
      served.delete(done.resolve)
    },
    isServed,
    authorityOf: (group) => authorities.get(group) ?? null,
    async close() {
      for (const [, listening] of open)
        await listening.close(() => {
          for (const { socket } of all()) socket.destroy()
        })
    },
  }
}

/** Machines that are kept from siblings alone decide nothing by name. The values are for the egress process alone. */
export function decidesByName(egress: MachineEgress | null): egress is MachineEgress {
  return egress !== null && (egress.mode !== 'open' || egress.secrets.length > 0)
}

function rulesEvent(
  kind: keyof LinkSockets,
  { address, machine, group, egress }: Omit<Restricted, 'egress'> & { egress: MachineEgress | null },
) {
  const event = { event: 'rules' as const, address, machine }
  if (!decidesByName(egress)) return { ...event, egress: null, secrets: [] }
  const { stack: _, secrets, ...rules } = egress
  if (kind === 'rules') return { ...event, egress: rules, team: group, secrets }
  return {
    ...event,
    egress: rules,
    secrets: secrets.map((each) => ({ ...each, placeholder: '', value: '' })),
  }
}

/** Anything but one certificate is refused, since it becomes a part of what units trust. */
function readCertificate(pem: string): string | null {
  try {
    return new X509Certificate(pem).toString()
  } catch {
    return null
  }
}
