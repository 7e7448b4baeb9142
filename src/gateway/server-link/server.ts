// The server's side of the gateway's requests (protocol.ts).

import { createServer, type Socket } from 'node:net'
import type { App } from '../../app.ts'
import { recordUses } from '../../domain/units/activity/record-use.ts'
import { visitUnit } from '../../domain/units/activity/visit.ts'
import { callLine, parseLine, type ReplyLine } from '../../lib/ipc/call-lines.ts'
import { serveJsonLines } from '../../lib/ipc/json-lines-rpc.ts'
import { listenForGroup } from '../../lib/ipc/unix-socket.ts'
import { isOutage } from '../../store/outage.ts'
import {
  KEEP_ALIVE_MS,
  MAX_BYTES,
  MAX_IDS,
  type Failure,
  type RunEnded,
  type WakeAnswer,
  type WakeOperation,
  wakeOperations,
  type WakeRequest,
} from './protocol.ts'

const handlers: {
  [K in WakeOperation]: (app: App, request: WakeRequest[K]) => Promise<WakeAnswer[K]>
} = {
  use: async (app, { unitId }) => await visitUnit(app, unitId),
  used: async (app, { unitIds }) => ({ awake: [...(await recordUses(app, unitIds))] }),
  visits: async ({ activity }, { unitIds, endpoints }) => {
    activity.sessions.tell(unitIds, endpoints)
    return {}
  },
}

/** One gateway, and earlier ones that have not ended yet. */
const MAX_CONNECTIONS = 64

/** Serves until closed. Closing breaks off requests in progress: the gateway sends them to the next server. */
export async function serveWakes(
  app: App,
  { socketPath, socketGid }: { socketPath: string; socketGid: number },
): Promise<{ close(): Promise<void> }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    converse(app, socket)
  })
  server.maxConnections = MAX_CONNECTIONS
  const listening = await listenForGroup(server, socketPath, socketGid)
  return {
    close: async () => {
      await listening.close(() => {
        for (const socket of sockets) socket.destroy()
      })
      app.activity.sessions.end()
    },
  }
}

/** A gateway that reads more slowly is disconnected, and asks again. */
const UNREAD_BYTES = 4 * MAX_BYTES

function converse(app: App, socket: Socket): void {
  const { activity, log } = app
  const { say } = serveJsonLines(socket, {
    mostBytes: MAX_BYTES,
    mostUnreadBytes: UNREAD_BYTES,
    mostCalls: MAX_IDS,
    answer: (line) => {
      const question = parse(line)
      return question && answerTo(app, question)
    },
  })
  const tellRunEnded = (of: string) => say(JSON.stringify({ event: 'runEnded', of } satisfies RunEnded))
  const keepAlive = setInterval(() => say(''), KEEP_ALIVE_MS)
  activity.events.on('runEnded', tellRunEnded)
  socket.once('close', () => {
    clearInterval(keepAlive)
    activity.events.off('runEnded', tellRunEnded)
  })
  socket.on('error', (error) => log.debug({ error: error.message }, 'gateway connection lost'))
  say('')
}

type Question = { id: number; operation: WakeOperation; request: unknown }

function parse(line: string): Question | null {
  const question = parseLine(callLine, line)
  if (!question || !isOperation(question.operation)) return null
  const { operation } = question
  const request = wakeOperations[operation].request.safeParse(question.request)
  return request.success ? { id: question.id, operation, request: request.data } : null
}

/** Never rejects. */
async function answerTo(app: App, { id, operation, request }: Question): Promise<ReplyLine> {
  try {
    // `never`: the compiler cannot see that both belong to the same row of the table.
    return { id, answer: await handlers[operation](app, request as never) }
  } catch (error) {
    if (!isOutage(error)) app.log.error({ err: error }, 'gateway request failed')
    const publicMessage = `The server cannot answer "${operation}" at the moment.`
    return { id, error: { kind: 'unavailable', publicMessage } } satisfies Failure
  }
}

function isOperation(name: string): name is WakeOperation {
  return Object.hasOwn(wakeOperations, name)
}
