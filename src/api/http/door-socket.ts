// A socket of the API for the gateway of this host, which passes calls of other host names on (gateway/http/door.ts). Other
// users of the host cannot connect to it.

import { createServer } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { SECOND } from '../../lib/clock.ts'
import { listenForGroup } from '../../lib/ipc/unix-socket.ts'
import { longestArrivalMs } from './arrival.ts'
import { refuseMalformed } from './response.ts'

/** As many as there can be visits. */
const MAX_CONNECTIONS = 16_384

export async function serveDoor(
  api: FastifyInstance,
  { socketPath, socketGid }: { socketPath: string; socketGid: number },
): Promise<{ close(): Promise<void> }> {
  const server = createServer(
    { requestTimeout: longestArrivalMs, headersTimeout: 10 * SECOND },
    (request, response) => api.routing(request, response),
  )
  server.maxConnections = MAX_CONNECTIONS
  server.on('clientError', (error, socket) => refuseMalformed(error, socket as never))
  const listening = await listenForGroup(server, socketPath, socketGid)
  return {
    close: async () => await listening.close(() => server.closeAllConnections()),
  }
}
