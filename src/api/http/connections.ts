// Limits the connections to the API, in total and per peer, because opening one needs no credential. At the limit, an
// idle connection of the peer with the most connections is closed to make room, and of those first one that was never
// given what it asked for. A flood of idle connections thus evicts itself, also where it comes from the address of an
// honest caller: one that waits for an answer, or is about to use its connection again, keeps it.

import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { peerKey } from '../../domain/credentials/failed-attempts.ts'
import { SECOND } from '../../lib/clock.ts'

export type ConnectionLimits = {
  inAll: number
  /**
   * A peer is an IPv4 address, or the /64 of an IPv6 address. A trusted proxy carries many callers and has no such
   * limit.
   */
  perPeer: number
  /** How long the head of a request may take, counted from the opening of the connection. */
  headersMs: number
  lookEveryMs: number
}

export const connectionLimits: ConnectionLimits = {
  inAll: 2500,
  perPeer: 1250,
  headersMs: 10 * SECOND,
  lookEveryMs: 5 * SECOND,
}

type Connection = { socket: Socket; peer: string; requests: number; served: boolean }

/** Both longest idle first. `served`: a request on them succeeded. */
type OfPeer = { unserved: Set<Connection>; served: Set<Connection> }

type Peers = Map<string, OfPeer>

/**
 * Calls `tellOf` when a peer met its limit, or when the total limit is met, with the peer that has the most
 * connections.
 */
export function boundConnections(
  server: Server,
  { inAll, perPeer }: ConnectionLimits,
  isProxy: (address: string) => boolean,
  tellOf: (peer: string) => void,
): void {
  const peers: Peers = new Map()
  const known = new WeakMap<Socket, Connection>()
  let count = 0

  const leave = (connection: Connection) => {
    const own = peers.get(connection.peer)
    if (!own || !groupOf(own, connection).delete(connection)) return
    count -= 1
    if (sizeOf(own) === 0) peers.delete(connection.peer)
  }
  /** Returns false when all of them wait for an answer. */
  const closeOneOf = ({ unserved, served }: OfPeer): boolean => {
    for (const connection of chain(unserved, served)) {
      if (connection.requests > 0) continue
      connection.socket.destroy()
      leave(connection)
      return true
    }
    return false
  }
  const makeRoomFor = (address: string, peer: string): boolean => {
    const own = peers.get(peer)
    if (own && sizeOf(own) >= perPeer && !isProxy(address)) {
      tellOf(peer)
      return closeOneOf(own)
    }
    if (count < inAll) return true
    const most = [...peers].toSorted(([, a], [, b]) => sizeOf(b) - sizeOf(a))
    tellOf(most[0]?.[0] ?? peer)
    return most.some(([, own]) => closeOneOf(own))
  }

  server.on('connection', (socket) => {
    const address = socket.remoteAddress ?? ''
    const peer = peerKey(address)
    if (!makeRoomFor(address, peer)) return void socket.destroy()
    const connection = { socket, peer, requests: 0, served: false }
    const own = peers.get(peer) ?? { unserved: new Set(), served: new Set() }
    own.unserved.add(connection)
    peers.set(peer, own)
    known.set(socket, connection)
    count += 1
    socket.once('close', () => leave(connection))
  })
  // An open WebSocket is in use, even while it is silent.
  server.on('upgrade', ({ socket }) => {
    const connection = known.get(socket)
    if (connection) connection.requests += 1
  })
  server.on('request', ({ socket }, response) => {
    const connection = known.get(socket)
    if (!connection) return
    connection.requests += 1
    response.once('close', () => {
      connection.requests -= 1
      const own = peers.get(connection.peer)
      if (!own || !groupOf(own, connection).delete(connection)) return
      connection.served ||= response.headersSent && response.statusCode < 400
      groupOf(own, connection).add(connection)
    })
  })
}

function groupOf({ unserved, served }: OfPeer, connection: Connection): Set<Connection> {
  return connection.served ? served : unserved
}

function sizeOf({ unserved, served }: OfPeer): number {
  return unserved.size + served.size
}

function* chain<T>(...iterables: Iterable<T>[]): Generator<T> {
  for (const iterable of iterables) yield* iterable
}
