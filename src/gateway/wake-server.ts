// The server's side of the gateway's questions (wake-protocol.ts).

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { App } from '../app.ts'
import { recordUses } from '../domain/units/use.ts'
import { visitUnit } from '../domain/units/visit.ts'
import { createVisits, type Visits } from '../domain/units/visits.ts'
import { inodeOf, listenForGroup, removeSocket } from '../lib/socket-listen.ts'
import { isOutage } from '../store/outage.ts'
import {
  DEPARTURES,
  KEEP_ALIVE_MS,
  type WakeAnswer,
  type WakeOperation,
  wakeOperations,
  type WakeRequest,
} from './wake-protocol.ts'

type Served = { app: App; visits: Visits }

const handlers: {
  [K in WakeOperation]: (served: Served, request: WakeRequest[K]) => Promise<WakeAnswer[K]>
} = {
  use: async ({ app }, { unitId }) => await visitUnit(app, unitId),
  used: async ({ app }, { unitIds }) => ({ awake: [...(await recordUses(app, unitIds))] }),
  visits: async ({ visits }, { unitIds }) => {
    visits.tell(unitIds)
    return {}
  },
}

/** Serves until closed. Closing breaks off what is in flight: the gateway asks the next server again. */
export async function serveWakes(
  app: App,
  { socketPath, socketGid }: { socketPath: string; socketGid: number },
): Promise<{ close(): Promise<void> }> {
  const served = { app, visits: createVisits(app) }
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    answer(served, request, response).catch((error: unknown) => refuse(app, response, error))
  })
  server.maxConnections = 4096
  await listenForGroup(server, socketPath, socketGid)
  const inode = await inodeOf(socketPath)
  return {
    close: async () => {
      await removeSocket(socketPath, inode)
      await closeNow(server)
      served.visits.end()
    },
  }
}

async function closeNow(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeAllConnections()
  await closed
}

async function answer(served: Served, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const operation = (request.url ?? '').slice(1)
  if (request.method !== 'POST') throw new Malformed('Only POST is known.')
  if (operation === DEPARTURES) tellDepartures(served.app, response)
  else if (isOperation(operation)) await answerOne(served, operation, request, response)
  else throw new Malformed('There is no such operation.')
}

async function answerOne<K extends WakeOperation>(
  served: Served,
  operation: K,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { request: schema, maxBodyBytes } = wakeOperations[operation]
  const parsed = schema.safeParse(await readBody(request, maxBodyBytes))
  if (!parsed.success) throw new Malformed('The request is not what the operation takes.')
  reply(response, 200, await handlers[operation](served, parsed.data as WakeRequest[K]))
}

/** Whoever reads it too slowly is cut off, and asks anew. */
const UNREAD_BYTES = 256 * 1024

function tellDepartures({ departures }: App, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/plain' })
  const say = (line: string) => {
    response.write(`${line}\n`)
    if (response.writableLength > UNREAD_BYTES) response.destroy()
  }
  const keepAlive = setInterval(() => say(''), KEEP_ALIVE_MS)
  departures.on('unit', say)
  response.once('close', () => {
    clearInterval(keepAlive)
    departures.off('unit', say)
  })
  // The first line says that nothing is missed from here on.
  say('')
}

function refuse({ log }: App, response: ServerResponse, error: unknown): void {
  if (response.destroyed) return
  if (response.headersSent) {
    response.destroy()
    return
  }
  const isMalformed = error instanceof Malformed
  // What is left of a body too long is not read: the connection ends with this answer.
  if (isMalformed) response.shouldKeepAlive = false
  else if (!isOutage(error)) log.error({ err: error }, 'a question of the gateway failed')
  reply(response, isMalformed ? 400 : 503, { message: isMalformed ? error.message : 'Not now.' })
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  const text = Buffer.from(JSON.stringify(body))
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': text.length }).end(text)
}

function isOperation(name: string): name is WakeOperation {
  return Object.hasOwn(wakeOperations, name)
}

async function readBody(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxBytes) throw new Malformed(`The request is longer than ${maxBytes} bytes.`)
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    throw new Malformed('The request is not JSON.')
  }
}

class Malformed extends Error {}
