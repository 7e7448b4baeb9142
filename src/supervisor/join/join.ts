// A machine joins as a host: it makes two keys, which never leave it, and gets certificates for them from the server's
// machine, addresses for its units, and the place where its gateway reaches the server.

import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { DOOR_NAME } from '../../certificates/fleet-ca.ts'
import { makeKey, signingRequest, toPem } from '../../certificates/signed.ts'
import { VERSION } from '../../lib/version.ts'
import { type FleetRole, fleetNameOf, parseIdentity } from '../../lib/fleet-identity.ts'
import { type Address, addressText } from '../../lib/setting-values.ts'
import { findFreeSubnets, isUnused, keepInstance, loadInstance } from '../instance.ts'
import { keepMembership, type Membership } from './membership.ts'
import {
  type Admitted,
  ANSWER_WITHIN_MS,
  fingerprintOf,
  type Invitation,
  joinAnswer,
  readLine,
} from './protocol.ts'
import { errorCodeOf } from '../../lib/error-code.ts'

type Joining = {
  dataDir: string
  /** Where its engine will listen. */
  listen: Address
  /** Where the server reaches it; null: at the address by which this machine reaches the server's. */
  reachedAt: Address | null
}

/** Throws a sentence, and leaves nothing. */
export async function joinFleet(
  invitation: Invitation,
  { dataDir, listen, reachedAt }: Joining,
): Promise<Membership> {
  const instance = await loadInstance(dataDir)
  const free = (await isUnused(dataDir)) ? await findFreeSubnets() : []
  const others = free.map((subnet) => Number(subnet.split('.')[1]))
  const [engine, gateway] = [await newKey('engine'), await newKey('gateway')]
  const proof = randomBytes(32).toString('base64url')
  const asked = {
    version: VERSION,
    secret: invitation.secret,
    at: Date.now(),
    requests: { engine: engine.request, gateway: gateway.request },
    instance: instance.id,
    subnet: instance.subnet,
    others,
    proof,
  }
  const listening = await sayProof(listen, proof)
  const { name, certificates, subnet, link } = await askDoor(invitation, (own) => {
    const host = isAnyAddress(listen.host) ? own : listen.host
    return JSON.stringify({ ...asked, engine: reachedAt ?? { host, port: listen.port } })
  }).finally(listening)
  const identities = {
    engine: toPem(engine.key) + certificates.engine,
    gateway: toPem(gateway.key) + certificates.gateway,
  }
  for (const identity of Object.values(identities)) parseIdentity(identity)
  if (subnet !== instance.subnet && !free.includes(subnet))
    throw new Error(`The server gave this machine the addresses ${subnet}, which are in use here.`)
  if (subnet !== instance.subnet) await keepInstance(dataDir, { ...instance, subnet })
  const { host, port } = invitation
  // A server that listens at every address is where its door is.
  const found = link && isAnyAddress(link.host) ? { host, port: link.port } : link
  const membership = { name, door: { host, port }, link: found, token: fingerprintOfToken(invitation) }
  await keepMembership(dataDir, membership, identities)
  return membership
}

export function fingerprintOfToken({ secret }: Pick<Invitation, 'secret'>): string {
  return createHash('sha256').update(secret).digest('base64url')
}

/** The door says for which name it signs. */
async function newKey(role: FleetRole) {
  const key = await makeKey()
  return { key, request: signingRequest([fleetNameOf({ role, host: 'host' })], key).toString('base64') }
}

export function isAnyAddress(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

/** The engine does not run yet: a connection to its address is told that it is this machine's. */
async function sayProof({ host, port }: Address, proof: string): Promise<() => void> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.end(`${proof}\n`)
  })
  server.listen(port, host)
  await once(server, 'listening').catch((cause: NodeJS.ErrnoException) => {
    throw new Error(
      `This machine cannot listen at ${addressText({ host, port })} (${cause.code}): set BERTH_ENGINE_TLS to an address of its own and a free port.`,
      { cause },
    )
  })
  return () => void server.close()
}

/** The server may have signed by then, so the token may be used. */
const TOOK_TOO_LONG =
  'the server did not answer in time. Start again; if its token is used by then, make another one.'

/**
 * Nothing is sent to a machine that does not show the door's certificate. `lineFrom` gets the address by
 * which this machine reaches it.
 */
async function askDoor(invitation: Invitation, lineFrom: (own: string) => string): Promise<Admitted> {
  const { host, port } = invitation
  const where = addressText({ host, port })
  // Without an authority the fingerprint is checked instead.
  const trust =
    'authority' in invitation
      ? { ca: invitation.authority, servername: DOOR_NAME }
      : { rejectUnauthorized: false }
  const socket = connect({ host, port, minVersion: 'TLSv1.3', ...trust })
  const tooLong = setTimeout(() => socket.destroy(new Error(TOOK_TOO_LONG)), ANSWER_WITHIN_MS)
  try {
    await connected(socket)
    const shown = socket.getPeerX509Certificate()
    if (!shown || ('fingerprint' in invitation && fingerprintOf(shown) !== invitation.fingerprint))
      throw new Error('another machine answers there. Compare the address with that of the server.')
    socket.write(`${lineFrom(socket.localAddress ?? '')}\n`)
    const answer = joinAnswer.parse(JSON.parse(await readLine(socket)))
    if ('refused' in answer) throw new Error(`${answer.refused}.`)
    return answer
  } catch (cause) {
    throw new Error(`This machine has not joined at ${where}: ${reasonOf(cause)}`, { cause })
  } finally {
    clearTimeout(tooLong)
    socket.destroy()
  }
}

async function connected(socket: TLSSocket): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve)
    socket.on('error', reject)
  })
}

const reasons: Record<string, string> = {
  ECONNREFUSED:
    'nothing listens there. Its token is used or too old, or its command has ended: make another one.',
  EHOSTUNREACH: 'there is no route to this address.',
  ENETUNREACH: 'there is no route to this address.',
  ENOTFOUND: 'the name has no address.',
}

function reasonOf(error: unknown): string {
  return reasons[errorCodeOf(error)] ?? (error instanceof Error ? error.message : String(error))
}
