// `npm run hosts -- join-token`: the door at which one host joins. It is open while the operator waits, an hour at most,
// and signs once. So nothing about it is stored, and an installation that adds no host has no port for it.

import { randomBytes, timingSafeEqual, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type TLSSocket } from 'node:tls'
import { issueDoor, signIdentity } from '../../certificates/fleet-ca.ts'
import { HOUR, SECOND } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Address } from '../../lib/setting-values.ts'
import { loadInstance } from '../../supervisor/instance.ts'
import { giveBlock } from './blocks.ts'
import {
  ANSWER_WITHIN_MS,
  CLOCKS_APART_MS,
  fingerprintOf,
  joinRequest,
  type JoinToken,
  ownVersion,
  readLine,
  Refusal,
} from './protocol.ts'

const OPEN_MS = HOUR
const HANDSHAKE_MS = 5 * SECOND
const MAX_CONNECTIONS = 16
/** Nobody guesses a secret of 32 bytes, but a door at which this many try is not worth keeping. */
const MAX_WRONG = 20

export type Door = {
  token: JoinToken
  /** Resolves with the address of the host that has joined. Rejects with a sentence if none has. */
  joined: Promise<string>
  close(): void
}

type Admitted = { certificates: string; subnet: string }
type Opened = { dataDir: string; name: string; at: Address; log: Log; openMs?: number }

export async function openDoor({ dataDir, name, at, log, openMs = OPEN_MS }: Opened): Promise<Door> {
  // This machine's own addresses are settled before those of others.
  await loadInstance(dataDir)
  const pem = await issueDoor(dataDir, new Date())
  const secret = randomBytes(32).toString('base64url')
  const version = await ownVersion()
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
    if (asked.data.version !== version)
      throw new Refusal(
        `it runs Berth ${asked.data.version} and the server ${version}; install the same there`,
      )
    const apartMs = Math.abs(asked.data.at - Date.now())
    if (apartMs > CLOCKS_APART_MS)
      throw new Refusal(`the clocks are ${Math.round(apartMs / SECOND)} s apart; set both, then join again`)
    if (isUsed) throw new Refusal('its token is used already; make another one')
    // Before the signature, so that two hosts at once cannot both get one.
    isUsed = true
    try {
      const request = Buffer.from(asked.data.request, 'base64')
      const { instance, subnet, others } = asked.data
      const wanted = { name, instance, subnet, others: others.map((x) => `10.${x}.0.0/16`) }
      const certificates = await signIdentity(dataDir, { member: { role: 'engine', host: name }, request })
      return { certificates, subnet: await giveBlock(dataDir, wanted) }
    } catch (error) {
      isUsed = false
      if (error instanceof Refusal) throw error
      log.warn({ error: String(error) }, 'signing request of a host is not in order')
      throw new Refusal('its signing request is not in order', { cause: error })
    }
  }

  const receive = async (socket: TLSSocket): Promise<void> => {
    const peer = socket.remoteAddress ?? 'unknown'
    try {
      const admitted = await answer(await readLine(socket))
      socket.end(`${JSON.stringify(admitted)}\n`)
      log.info({ host: name, peer, subnet: admitted.subnet }, 'host has joined')
      outcome.resolve(peer)
    } catch (error) {
      if (!(error instanceof Refusal)) return void socket.destroy()
      log.warn({ host: name, peer, why: error.message }, 'host refused')
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
  server.maxConnections = MAX_CONNECTIONS
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
