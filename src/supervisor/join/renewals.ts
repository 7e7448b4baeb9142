// The supervisor signs new certificates for the keys of hosts that have joined (decisions/joining.md). The server asks, and
// is not believed: a request is signed with the engine's present key, and both the list of joined hosts, which root alone
// writes, and the database must have that host.

import { readFile } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { fleetAuthorityFile, signIdentity } from '../../certificates/fleet-ca.ts'
import { hostRoles, proveRenewalRequest, type ProvenRequest } from '../../certificates/renewal-request.ts'
import type { Clock } from '../../lib/clock.ts'
import { createSemaphore } from '../../lib/concurrency/semaphore.ts'
import { parseLine } from '../../lib/ipc/call-lines.ts'
import { serveJsonLines } from '../../lib/ipc/json-lines-rpc.ts'
import { RENEWAL_MAX_BYTES, renewalCall, type RenewalReply } from '../../lib/ipc/renewal-protocol.ts'
import { listenForGroup } from '../../lib/ipc/unix-socket.ts'
import type { Log } from '../../lib/log.ts'
import { openDatabase } from '../../store/db.ts'
import { isMember } from '../../store/joined-hosts.ts'
import { listBlocks } from './blocks.ts'

const MAX_CONNECTIONS = 16
/** Each is a host's; more of one server are a fault. */
const MAX_CALLS = 64

type Options = {
  dataDir: string
  socketPath: string
  /** The server's group. */
  socketGid: number
  databaseUrl: string
  clock: Clock
  log: Log
}

type Outcome = RenewalReply['outcome']

/** Serves until closed. */
export async function serveRenewals(options: Options): Promise<{ close: () => Promise<void> }> {
  const { socketPath, socketGid } = options
  const sign = createSigner(options)
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    serveJsonLines(socket, {
      mostBytes: RENEWAL_MAX_BYTES,
      mostUnreadBytes: MAX_CALLS * RENEWAL_MAX_BYTES,
      mostCalls: MAX_CALLS,
      answer: (line) => {
        const call = parseLine(renewalCall, line)
        return call && sign(call).then((outcome) => ({ id: call.id, outcome }) satisfies RenewalReply)
      },
    })
  })
  server.maxConnections = MAX_CONNECTIONS
  const listening = await listenForGroup(server, socketPath, socketGid)
  return {
    close: async () =>
      await listening.close(() => {
        for (const socket of sockets) socket.destroy()
      }),
  }
}

/** What it returns never rejects. */
function createSigner({ dataDir, databaseUrl, clock, log }: Options) {
  const oneAtATime = createSemaphore(1)
  /** By host, the time of the last request that was signed: none is signed twice. */
  const signedAt = new Map<string, number>()

  async function answer({ host, request }: { host: string; request: string }): Promise<Outcome> {
    const authority = await readFile(fleetAuthorityFile(dataDir), 'utf8')
    const proven = proveRenewalRequest(request, { authority, now: clock.now() })
    if ('refused' in proven) return proven
    if (proven.host !== host) return { refused: `its request is of the engine of ${proven.host}` }
    if (proven.at.getTime() <= (signedAt.get(host) ?? 0))
      return { refused: 'its request was answered already' }
    if (!(await isStillMember(proven)))
      return {
        refused: 'it was given up or removed, or is another machine than the one that joined; join it again',
      }
    const [engine, gateway] = await Promise.all(
      hostRoles.map(
        async (role) =>
          await signIdentity(dataDir, { member: { role, host }, request: proven.requests[role] }),
      ),
    )
    if (engine === undefined || gateway === undefined) throw new Error('a host has two certificates')
    signedAt.set(host, proven.at.getTime())
    log.info({ host }, 'certificates of a host renewed')
    return { engine, gateway }
  }

  async function isStillMember({ host: name, instance, issuedAt }: ProvenRequest): Promise<boolean> {
    const blocks = await listBlocks(dataDir)
    const hasJoined = blocks.some((block) => block.name === name && block.instance === instance)
    if (!hasJoined) return false
    // It is asked for a few times a year.
    const db = openDatabase(databaseUrl, log)
    try {
      return await isMember(db, { name, instance, issuedAt })
    } finally {
      await db.destroy()
    }
  }

  return async (asked: { host: string; request: string }): Promise<Outcome> =>
    await oneAtATime(async () => {
      const outcome = await answer(asked).catch((error: unknown) => {
        log.error({ host: asked.host, err: error }, 'certificates of a host could not be signed')
        return { refused: "the server's machine could not sign; its log says why" }
      })
      if ('refused' in outcome)
        log.warn({ host: asked.host, why: outcome.refused }, 'certificates of a host not renewed')
      return outcome
    })
}
