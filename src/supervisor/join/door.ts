// The door at which hosts join: it finds out who asks, signs for that host, and has the service enter it. Who may join and
// by which name is an `Admission`: the bearer of a token (by-token.ts) or a pod of Kubernetes (supervisor/kubernetes/).

import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import { issueDoor, signIdentity } from '../../certificates/fleet-ca.ts'
import { refuseVersion } from '../../lib/version.ts'
import { SECOND } from '../../lib/clock.ts'
import { createSemaphore } from '../../lib/concurrency/semaphore.ts'
import type { Log } from '../../lib/log.ts'
import { type Address, addressText } from '../../lib/setting-values.ts'
import { loadInstance } from '../instance.ts'
import { boundConnections } from './connections.ts'
import { giveBlock, listBlocks, takeBlockBack } from './blocks.ts'
import {
  type Admitted,
  ANSWER_WITHIN_MS,
  CLOCKS_APART_MS,
  fingerprintOf,
  joinRequest,
  joinRequestOfAny,
  readLine,
  Refusal,
} from './protocol.ts'

const HANDSHAKE_MS = 5 * SECOND
const REACH_WITHIN_MS = 5 * SECOND

/** The machine of a cluster that a host is on. */
export type ClusterNode = { name: string; uid: string }

/** A host as the service is to know it. `node`: null outside of a cluster. */
export type NewMember = { name: string; instance: string; engine: Address; node: ClusterNode | null }

/** Who may join. What throws a `Refusal` tells the host why it may not. */
export type Admission = {
  /** By which name, and from which node, the bearer of this secret joins. */
  identify(secret: string): Promise<Pick<NewMember, 'name' | 'node'>>
  /** Called once all else is right; what it returns is called if the host has not joined after all. */
  use(): () => void
  joined(peer: string): void
  refused(peer: string, why: string): void
}

type Served = {
  dataDir: string
  at: Address
  /** Where gateways of other machines reach the server. */
  link: Address | null
  admission: Admission
  /** Makes it a host of the service. Throws `Refusal` with a sentence if it cannot be one. */
  enter: (host: NewMember) => Promise<void>
  log: Log
}

export type ServedDoor = {
  at: Address
  /** Of the certificate that it shows. */
  fingerprint: string
  close(): void
}

export async function serveDoor(served: Served): Promise<ServedDoor> {
  const { dataDir, at, link, admission, enter, log } = served
  // This machine's own addresses are settled before those of others.
  await loadInstance(dataDir)
  const pem = await issueDoor(dataDir, new Date())
  const oneAtATime = createSemaphore(1)

  /** Throws a sentence for the host. */
  const answer = async (line: string): Promise<Admitted> => {
    const said = parseJson(line)
    const [stranger, asked] = [joinRequestOfAny.safeParse(said), joinRequest.safeParse(said)]
    if (!stranger.success) throw new Refusal('it sent something else than a host does')
    const { name, node } = await admission.identify(stranger.data.secret)
    const apart = refuseVersion(stranger.data.version)
    if (apart !== null) throw new Refusal(apart)
    if (!asked.success) throw new Refusal('it sent something else than a host of this version does')
    const apartMs = Math.abs(asked.data.at - Date.now())
    if (apartMs > CLOCKS_APART_MS)
      throw new Refusal(`the clocks are ${Math.round(apartMs / SECOND)} s apart; set both, then join again`)
    const { requests, instance, subnet, others, engine, proof } = asked.data
    await refuseUnreachable(engine, proof)
    // Before the signature, so that two hosts at once cannot both get one.
    const unuse = admission.use()
    try {
      return await oneAtATime(async () => {
        const sign = async (role: 'engine' | 'gateway') =>
          await signIdentity(dataDir, {
            member: { role, host: name },
            request: Buffer.from(requests[role], 'base64'),
          })
        const certificates = { engine: await sign('engine'), gateway: await sign('gateway') }
        const hadBlock = (await listBlocks(dataDir)).some((block) => block.name === name)
        const wanted = { name, instance, subnet, others: others.map((x) => `10.${x}.0.0/16`) }
        const given = await giveBlock(dataDir, wanted)
        try {
          await enter({ name, instance, engine, node })
        } catch (error) {
          if (!hadBlock) await takeBlockBack(dataDir, name)
          throw error
        }
        return { name, certificates, subnet: given, link }
      })
    } catch (error) {
      unuse()
      if (error instanceof Refusal) throw error
      log.warn({ error: String(error) }, 'host could not join')
      throw new Refusal('its signing requests are not in order, or the server failed; its log says more', {
        cause: error,
      })
    }
  }

  const receive = async (socket: TLSSocket): Promise<void> => {
    const peer = socket.remoteAddress ?? 'unknown'
    try {
      const line = await readLine(socket)
      connections.asks(socket)
      const admitted = await answer(line)
      socket.end(`${JSON.stringify(admitted)}\n`)
      log.info({ host: admitted.name, peer, subnet: admitted.subnet }, 'host has joined')
      admission.joined(peer)
    } catch (error) {
      if (!(error instanceof Refusal)) return void socket.destroy()
      log.warn({ peer, why: error.message }, 'host refused')
      socket.end(`${JSON.stringify({ refused: error.message })}\n`)
      admission.refused(peer, error.message)
    }
  }

  const server = createServer(
    { key: pem, cert: pem, minVersion: 'TLSv1.3', handshakeTimeout: HANDSHAKE_MS },
    (socket) => {
      const tooLong = setTimeout(() => socket.destroy(), ANSWER_WITHIN_MS)
      socket.once('close', () => clearTimeout(tooLong))
      socket.on('error', () => {})
      void receive(socket)
    },
  )
  const connections = boundConnections(server)
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  server.listen(at.port, at.host)
  await once(server, 'listening').catch((cause: NodeJS.ErrnoException) => {
    throw new Error(
      `This machine cannot listen at ${at.host}:${at.port} (${cause.code}): name an address of its own and a free port.`,
      { cause },
    )
  })
  const bound = server.address()
  const port = typeof bound === 'object' && bound !== null ? bound.port : at.port
  return {
    at: { host: at.host, port },
    fingerprint: fingerprintOf(new X509Certificate(pem)),
    close: () => void server.close(),
  }
}

/** Another machine may have that address, or a firewall may be in between. */
async function refuseUnreachable(engine: Address, proof: string): Promise<void> {
  const socket = connect(engine)
  const tooLong = setTimeout(() => socket.destroy(new Error('no answer')), REACH_WITHIN_MS)
  try {
    if ((await readLine(socket)) !== proof) throw new Error('another program answers')
  } catch (cause) {
    const why = cause instanceof Error && 'code' in cause ? String(cause.code) : (cause as Error).message
    throw new Refusal(
      `the server does not reach its engine at ${addressText(engine)} (${why}): let it through there, or set ` +
        'BERTH_ENGINE_ADDRESS on that machine to the address and port at which it is reached',
      { cause },
    )
  } finally {
    clearTimeout(tooLong)
    socket.destroy()
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
