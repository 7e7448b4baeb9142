// The server's side of the requests of its own host's gateway (protocol.ts).

import { createServer, type Socket } from 'node:net'
import type { App } from '../../app.ts'
import { listenForGroup } from '../../lib/ipc/unix-socket.ts'
import { ownGateway } from './answers.ts'
import { converse } from './conversation.ts'

/** The gateways of this host, and earlier ones that have not ended yet. */
const MAX_CONNECTIONS = 64

/** Serves until closed. Closing breaks off requests in progress: the gateway sends them to the next server. */
export async function serveWakes(
  app: App,
  { socketPath, socketGid }: { socketPath: string; socketGid: number },
): Promise<{ close(): Promise<void> }> {
  const own = ownGateway(app.fleet.local().id)
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    converse(app, socket, own)
  })
  server.maxConnections = MAX_CONNECTIONS
  const listening = await listenForGroup(server, socketPath, socketGid)
  return {
    close: async () => {
      await listening.close(() => {
        for (const socket of sockets) socket.destroy()
      })
      app.activity.sessions.end(own.hostId)
    },
  }
}
