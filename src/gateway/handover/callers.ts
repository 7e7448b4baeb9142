// Callers of the API that the server has let in to a port of a unit. It hands each of them to the gateway of its own host as
// gateways hand over visits to each other (protocol.ts), over a Unix socket that only the server can open; from there on the
// request goes the way of every visit.

import { connect, createServer, type Socket } from 'node:net'
import { type PortCaller, type PortHost, portNameOf } from '../../contract/port-host.ts'
import type { Log } from '../../lib/log.ts'
import { type Listening, listenForGroup } from '../../lib/ipc/unix-socket.ts'
import type { Gateway } from '../server.ts'
import { askOn } from './links.ts'
import { answers } from './protocol.ts'
import { readLine } from './take-over.ts'

/** As many as there can be visits. */
const MAX_CONNECTIONS = 16_384

/** Serves the server until closed. `gid`: its group. */
export async function listenForCallers(
  gateway: Pick<Gateway, 'takeCaller'>,
  { socketPath, gid, log }: { socketPath: string; gid: number; log: Log },
): Promise<{ close(): Promise<void> }> {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => open.delete(socket))
    take(gateway, socket).catch((error: unknown) => {
      log.warn({ error: String(error) }, 'gateway: the server said something else than it should')
      socket.destroy()
    })
  })
  server.maxConnections = MAX_CONNECTIONS
  const listening: Listening = await listenForGroup(server, socketPath, gid)
  return {
    close: async () =>
      await listening.close(() => {
        for (const socket of open) socket.destroy()
      }),
  }
}

async function take(gateway: Pick<Gateway, 'takeCaller'>, socket: Socket): Promise<void> {
  const visit = await readLine(socket)
  if (visit === null) return void socket.destroy()
  if (visit.kind !== 'requests' || visit.portName === undefined) throw new Error('it is no call')
  socket.write(Buffer.of(answers.yes), () => {
    if (!socket.destroyed) gateway.takeCaller(socket, visit)
  })
}

/** Returns a connection for one request in HTTP/1.1. Rejects while the gateway is away. */
export async function reachPort(
  socketPath: string,
  { address, isSecure, ...at }: PortHost & PortCaller,
): Promise<Socket> {
  const visit = { kind: 'requests', address, isSecure, portName: portNameOf(at) } as const
  const socket = connect(socketPath)
  const lost = new Promise<never>((_resolve, reject) => socket.once('error', reject))
  const answer = await Promise.race([askOn(socket, visit), lost])
  if (answer === 'yes') return socket
  socket.destroy()
  throw new Error(`the gateway does not take the call: ${answer}`)
}
