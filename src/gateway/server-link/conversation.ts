// One connection of a gateway, at the server.

import type { Socket } from 'node:net'
import type { App } from '../../app.ts'
import { callLine, parseLine, type ReplyLine } from '../../lib/ipc/call-lines.ts'
import { serveJsonLines } from '../../lib/ipc/json-lines-rpc.ts'
import { isOutage } from '../../store/outage.ts'
import { handlers, mayAsk, type Peer } from './answers.ts'
import {
  KEEP_ALIVE_MS,
  MAX_BYTES,
  MAX_IDS,
  type Failure,
  type GatewayOperation,
  gatewayOperations,
  type RunEnded,
} from './protocol.ts'

/** A gateway that reads more slowly is disconnected, and asks again. */
const UNREAD_BYTES = 4 * MAX_BYTES
/** Of questions with long lists in progress: a gateway asks one of each kind at a time, and again if one was late. */
const MAX_LISTS = 16

/** Answers the gateway until the connection ends. */
export function converse(app: App, socket: Socket, peer: Peer): void {
  const { activity, log } = app
  let lists = 0
  const { say } = serveJsonLines(socket, {
    mostBytes: MAX_BYTES,
    mostUnreadBytes: UNREAD_BYTES,
    mostCalls: MAX_IDS,
    answer: (line) => {
      const question = parse(line, peer)
      if (!question || (hasList(question) && lists === MAX_LISTS)) return null
      if (!hasList(question)) return answerTo(app, peer, question)
      lists += 1
      return answerTo(app, peer, question).finally(() => (lists -= 1))
    },
  })
  const tellRunEnded = (of: string, hostId: string) => {
    if (peer.isOwn || hostId === peer.hostId)
      say(JSON.stringify({ event: 'runEnded', of } satisfies RunEnded))
  }
  const keepAlive = setInterval(() => say(''), KEEP_ALIVE_MS)
  activity.events.on('runEnded', tellRunEnded)
  socket.once('close', () => {
    clearInterval(keepAlive)
    activity.events.off('runEnded', tellRunEnded)
  })
  socket.on('error', (error) => log.debug({ error: error.message }, 'gateway connection lost'))
  say('')
}

type Question = { id: number; operation: GatewayOperation; request: unknown }

const withoutList: ReadonlySet<GatewayOperation> = new Set(['use', 'loopback', 'address'])
const hasList = ({ operation }: Question) => !withoutList.has(operation)

function parse(line: string, peer: Peer): Question | null {
  const question = parseLine(callLine, line)
  if (!question || !mayAsk(peer, question.operation)) return null
  const { operation } = question
  const request = gatewayOperations[operation].request.safeParse(question.request)
  return request.success ? { id: question.id, operation, request: request.data } : null
}

/** Never rejects. */
async function answerTo(app: App, peer: Peer, { id, operation, request }: Question): Promise<ReplyLine> {
  try {
    // `never`: the compiler cannot see that both belong to the same row of the table.
    return { id, answer: await handlers[operation](app, peer, request as never) }
  } catch (error) {
    if (!isOutage(error)) app.log.error({ err: error }, 'gateway request failed')
    const publicMessage = `The server cannot answer "${operation}" at the moment.`
    return { id, error: { kind: 'unavailable', publicMessage } } satisfies Failure
  }
}
