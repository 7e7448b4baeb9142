// Bounds the connections to the door. Opening one needs no token, so one that has not sent its request yet makes room for a
// new one, first of the same address, and one that says nothing at all is closed soon (as decisions/limits.md has it for
// the API).

import type { Server, Socket } from 'node:net'
import { peerKey } from '../../domain/credentials/failed-attempts.ts'
import { SECOND } from '../../lib/clock.ts'

const IN_ALL = 16
/** Of one address, or of the /64 of an IPv6 address. */
const PER_PEER = 4
const FIRST_BYTE_MS = 2 * SECOND

type Connection = { socket: Socket; peer: string; isAsking: boolean }

export type DoorConnections = {
  /** This one has sent its request, and is no longer closed for others. */
  asks(connection: Pick<Socket, 'remoteAddress' | 'remotePort'>): void
}

export function boundConnections(server: Server): DoorConnections {
  /** By address and port, oldest first. */
  const open = new Map<string, Connection>()
  const keyOf = ({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>) =>
    `${remoteAddress} ${remotePort}`

  const makeRoomFor = (peer: string): boolean => {
    const all = [...open.values()]
    const countOf = (of: string) => all.filter((each) => each.peer === of).length
    const isFull = countOf(peer) >= PER_PEER
    if (!isFull && all.length < IN_ALL) return true
    const silent = all.filter((each) => !each.isAsking && (!isFull || each.peer === peer))
    const [first] = silent.toSorted((a, b) => countOf(b.peer) - countOf(a.peer))
    if (!first) return false
    open.delete(keyOf(first.socket))
    first.socket.destroy()
    return true
  }

  server.on('connection', (socket: Socket) => {
    const peer = peerKey(socket.remoteAddress ?? '')
    if (!makeRoomFor(peer)) return void socket.destroy()
    const key = keyOf(socket)
    open.set(key, { socket, peer, isAsking: false })
    const silent = setTimeout(() => {
      if (socket.bytesRead === 0) socket.destroy()
    }, FIRST_BYTE_MS)
    socket.once('close', () => {
      clearTimeout(silent)
      open.delete(key)
    })
  })
  return {
    asks(socket) {
      const connection = open.get(keyOf(socket))
      if (connection) connection.isAsking = true
    },
  }
}
