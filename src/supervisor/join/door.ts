// `npm run hosts -- join-token`: the door at which one host joins. It is open while the operator waits, an hour at most,
// and signs once. So nothing about it is stored, and an installation that adds no host has no port for it.

import { randomBytes, timingSafeEqual, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import { issueDoor, signIdentity } from '../../certificates/fleet-ca.ts'
import { VERSION } from '../../lib/version.ts'
import { HOUR, SECOND } from '../../lib/clock.ts'
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
  type JoinToken,
  readLine,
  Refusal,
} from './protocol.ts'

const OPEN_MS = HOUR
const HANDSHAKE_MS = 5 * SECOND
const REACH_WITHIN_MS = 5 * SECOND
/** Nobody guesses a secret of 32 bytes, but a door at which this many try is not worth keeping. */
const MAX_WRONG = 20

export type Door = {
  token: JoinToken
  /** Resolves with the address of the host that has joined. Rejects with a sentence if none has. */
  joined: Promise<string>
  close(): void
}

/** A host as the service is to know it. */
export type NewMember = { name: string; instance: string; engine: Address }

type Opened = {
  dataDir: string
  name: string
  at: Address
  /** Where gateways of other machines reach the server. */
  link: Address | null
  /** Makes it a host of the service. Throws `Refusal` with a sentence if it cannot be one. */
  enter: (host: NewMember) => Promise<void>
  /** Called with each machine that was refused, and why. */
  refused?: (peer: string, why: string) => void
  log: Log
  openMs?: number
}

export async function openDoor(opened: Opened): Promise<Door> {
  const { dataDir, name, at, link, enter, refused, log, openMs = OPEN_MS } = opened
  // This machine's own addresses are settled before those of others.
  await loadInstance(dataDir)
  const pem = await issueDoor(dataDir, new Date())
  const secret = randomBytes(32).toString('base64url')
  const outcome = Promise.withResolvers<string>()
  let isUsed = false
  let wrong = 0

  /** Throws a sentence for the host. */
  const answer = async (line: string): Promise<Admitted> => {
    const asked = joinRequest.safeParse(parseJson(line))
    if (!asked.success) throw new Refusal('it sent something else than a host of this version does')
    if (!isEqual(asked.data.secret, secret)) {
      wrong += 1
      throw new Refusal('its token is not the one that this door was opened for; make another one')
    }
    if (asked.data.version !== VERSION)
      throw new Refusal(
        `it runs Berth ${asked.data.version} and the server ${VERSION}; install the same there`,
      )
    const apartMs = Math.abs(asked.data.at - Date.now())
    if (apartMs > CLOCKS_APART_MS)
      throw new Refusal(`the clocks are ${Math.round(apartMs / SECOND)} s apart; set both, then join again`)
    const { requests, instance, subnet, others, engine, proof } = asked.data
    await refuseUnreachable(engine, proof)
    if (isUsed) throw new Refusal('its token is used already; make another one')
    // Before the signature, so that two hosts at once cannot both get one.
    isUsed = true
    try {
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
        await enter({ name, instance, engine })
      } catch (error) {
        if (!hadBlock) await takeBlockBack(dataDir, name)
        throw error
      }
      return { certificates, subnet: given, link }
    } catch (error) {
      isUsed = false
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
      log.info({ host: name, peer, subnet: admitted.subnet }, 'host has joined')
      outcome.resolve(peer)
    } catch (error) {
      if (!(error instanceof Refusal)) return void socket.destroy()
      log.warn({ host: name, peer, why: error.message }, 'host refused')
      refused?.(peer, error.message)
      socket.end(`${JSON.stringify({ refused: error.message })}\n`)
      if (wrong >= MAX_WRONG)
        outcome.reject(
          new Error(`${MAX_WRONG} connections had a wrong token: let only ${name} reach this port.`),
        )
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
  const late = setTimeout(
    () => outcome.reject(new Error(`No host has joined as ${name} in time: make another token.`)),
    openMs,
  )
  const close = () => {
    clearTimeout(late)
    server.close()
  }
  const bound = server.address()
  const port = typeof bound === 'object' && bound !== null ? bound.port : at.port
  const token = { name, host: at.host, port, fingerprint: fingerprintOf(new X509Certificate(pem)), secret }
  outcome.promise.then(close, close)
  return { token, joined: outcome.promise, close }
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

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
