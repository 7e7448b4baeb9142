// Calls of the API that came to a server that does not lead: it hands the whole connection to the one that leads, over the
// mutual TLS at which that answers gateways. A line says from where the caller came, a byte answers, and from then on the
// bytes are the caller's own, whatever they are: HTTP, events or a WebSocket. Another line says that the server stops: with its next
// answer each of its callers is told to send its next call elsewhere, which alone the one that answers can say.

import type { Socket } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { z } from 'zod'
import { SECOND } from '../clock.ts'
import type { FleetIdentity } from '../fleet-identity.ts'
import type { Address } from '../setting-values.ts'
import { anyServer, fleetTls, PROBE_AFTER_MS } from './fleet-tls.ts'

/** What a TLS connection carries, as it is named in ALPN. */
export const CALLS_PROTOCOL = 'berth-calls'

const saidSchema = z.union([
  z.strictObject({ address: z.union([z.ipv4(), z.ipv6()]) }),
  z.strictObject({ stops: z.literal(true) }),
])
type Said = z.infer<typeof saidSchema>
const MAX_LINE_BYTES = 128
const LINE_FEED = 0x0a
const TAKEN = Buffer.of(0x2b)
const ANSWER_WITHIN_MS = 3 * SECOND

type Other = { leader: Address; identity: FleetIdentity }

/** Null if the other server does not take it. Nothing of the caller is read before it did. */
export async function handToLeader(caller: Socket, other: Other): Promise<TLSSocket | null> {
  const address = addressOf(caller)
  return address === undefined ? null : await say({ address }, other)
}

/** Returns whether the callers that were handed to the leader will hear that this server stops. */
export async function tellStopping(other: Other): Promise<boolean> {
  const link = await say({ stops: true }, other)
  link?.destroy()
  return link !== null
}

/** Null if the other server does not take it. */
async function say(said: Said, { leader: { host, port }, identity }: Other): Promise<TLSSocket | null> {
  const link = connect({
    host,
    port,
    ...fleetTls(identity),
    ALPNProtocols: [CALLS_PROTOCOL],
    ...anyServer,
  })
  link.setNoDelay(true).setKeepAlive(true, PROBE_AFTER_MS)
  link.on('error', () => {})
  const late = setTimeout(() => link.destroy(), ANSWER_WITHIN_MS)
  link.once('secureConnect', () => link.write(`${JSON.stringify(said)}\n`))
  const isTaken = await firstRead(link, () => (link.read(1) as Buffer | null)?.equals(TAKEN) ?? null)
  clearTimeout(late)
  if (isTaken) return link
  link.destroy()
  return null
}

/** Without the interface of an address that is only of one. */
function addressOf({ remoteAddress }: Socket): string | undefined {
  return remoteAddress?.replace(/%.*$/, '')
}

/**
 * Takes a connection that another server hands over: it is the caller's from then on. Or hears that such a server stops. Ends one
 * that says anything else.
 */
export async function takeCalls(
  link: TLSSocket,
  take: (caller: Socket) => void,
  onStopping: () => void,
): Promise<void> {
  let bytes = Buffer.alloc(0)
  const late = setTimeout(() => link.destroy(), ANSWER_WITHIN_MS)
  const line = await firstRead(link, () => {
    for (let chunk = link.read() as Buffer | null; chunk; chunk = link.read() as Buffer | null)
      bytes = Buffer.concat([bytes, chunk])
    if (bytes.length > MAX_LINE_BYTES) return ''
    return bytes.at(-1) === LINE_FEED ? bytes.toString('utf8') : null
  })
  clearTimeout(late)
  const said = line === null ? null : parse(line)
  if (!said) return void link.destroy()
  if ('stops' in said) {
    onStopping()
    return void link.end(TAKEN)
  }
  // Limits and the audit log are about the caller, and not about the server in between.
  Object.defineProperty(link, 'remoteAddress', { value: said.address })
  link.write(TAKEN, () => void (link.destroyed || take(link)))
}

function parse(line: string): Said | null {
  try {
    return saidSchema.safeParse(JSON.parse(line)).data ?? null
  } catch {
    return null
  }
}

/** What `look` finds once it is not null; null if the connection ends first. */
function firstRead<T>(socket: Socket, look: () => T | null): Promise<T | null> {
  return new Promise((resolve) => {
    const settle = (found: T | null) => {
      socket.off('readable', again)
      socket.off('close', end)
      resolve(found)
    }
    const again = () => {
      const found = look()
      if (found !== null) settle(found)
    }
    const end = () => settle(null)
    socket.on('readable', again)
    socket.once('close', end)
  })
}
