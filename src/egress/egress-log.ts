// Notes what a machine reached and was refused, for the log that people read.

import type { Socket } from 'node:net'
import { minuteOf, type SeenLine } from '../lib/egress/seen.ts'
import { type Decision, ruleFor } from './decide.ts'
import type { Door } from './door.ts'

const TLS_PORT = 443
const SECRET_MAX = 200

type Session = { machine: string; host: string; counted: SeenLine | null }

/** A request to the host of a secret. `used`: the names of those whose values were put in. */
export function noteBrokered(door: Pick<Door, 'link' | 'note'>, session: Session, used: string[]): void {
  const { machine, host } = session
  const rule = ruleFor(door.link, machine, host, TLS_PORT)
  const line = { host, port: TLS_PORT, protocol: 'tls', decision: 'allowed', reason: 'listed' } as const
  session.counted = door.note(machine, { ...lineNow(), ...line, rule, secret: shownNames(used) })
}

/** A request that was not sent, since it has secrets that are not for its method or path. */
export function noteMisused(door: Pick<Door, 'note'>, { machine, host }: Session, names: string[]): void {
  const line = {
    host,
    port: TLS_PORT,
    protocol: 'tls',
    decision: 'refused',
    reason: 'secret_request',
  } as const
  door.note(machine, { ...lineNow(), ...line, secret: shownNames(names) })
}

/** Names are a person's text. */
function shownNames(names: string[]): string | null {
  const text = names
    .toSorted()
    .join(', ')
    .replace(/[^ -~]/g, '?')
  return text === '' ? null : text.slice(0, SECRET_MAX)
}

/** Of a connection to such a host, whose bytes are those of its newest request's line. */
export function noteBrokeredEnd(door: Pick<Door, 'note'>, session: Session, host: Socket): void {
  const { counted, machine } = session
  if (counted === null) return
  door.note(machine, { ...counted, bytesIn: host.bytesRead, bytesOut: host.bytesWritten })
}

type Noting = { door: Pick<Door, 'note'>; machine: string; protocol: 'http' | 'tls'; port: number }
type Refused = Pick<Decision & { kind: 'refused' }, 'name' | 'reason'>
type Allowed = Pick<Decision & { kind: 'allowed' }, 'name' | 'rule'>

export function noteRefused({ door, machine, protocol, port }: Noting, { name, reason }: Refused): void {
  // It is the engine that is away, and it knows the machine by its rules.
  if (reason === 'no_rules') return
  door.note(machine, { ...lineNow(), host: name, port, protocol, decision: 'refused', reason })
}

/** `host`: the connection that was made; null if there was none. Its bytes are added when it ends. */
export function noteAllowed(
  { door, machine, protocol, port }: Noting,
  { name, rule }: Allowed,
  host: Socket | null,
): void {
  if (host === null) return noteFailed({ door, machine, protocol, port }, { name, rule }, 'unreachable')
  const address = host.remoteAddress ?? null
  const line = { host: name, address, port, protocol, decision: 'allowed', reason: 'listed', rule } as const
  const counted = door.note(machine, { ...lineNow(), ...line })
  host.once('close', () => {
    door.note(machine, { ...counted, bytesIn: host.bytesRead, bytesOut: host.bytesWritten })
  })
}

/** A connection to a host that is allowed, on which nothing was sent. */
export function noteFailed(
  { door, machine, protocol, port }: Noting,
  { name, rule }: Allowed,
  reason: 'unreachable' | 'unverified',
): void {
  door.note(machine, { ...lineNow(), host: name, port, protocol, decision: 'allowed', reason, rule })
}

function lineNow() {
  const nothing = { address: null, rule: null, secret: null, bytesIn: 0, bytesOut: 0 }
  return { ...nothing, minute: minuteOf(new Date()), count: 1 } satisfies Partial<SeenLine>
}
