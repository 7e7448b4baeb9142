// The other gateways of this host (protocol.ts). Each listens on a socket in one directory, and keeps a connection to each
// other one, on which it publishes its entries, again after the other one was restarted. What a gateway has published ends with
// its connection. A line is written before the bytes that let a visitor ask elsewhere, and is read before a connection
// that came later.

import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Clock } from '../../lib/clock.ts'
import { answerLine, callLine, parseLine, type ReplyLine } from '../../lib/ipc/call-lines.ts'
import { type JsonLinesClient, openJsonLinesClient, serveJsonLines } from '../../lib/ipc/json-lines-rpc.ts'
import { type Listening, listenForGroup } from '../../lib/ipc/unix-socket.ts'
import type { Log } from '../../lib/log.ts'
import {
  type Entry,
  type EntryKind,
  MAX_ENTRIES,
  MAX_LINE_BYTES,
  type PeerAnswer,
  type PeerOperation,
  peerOperations,
  type PeerRequest,
  peerReply,
} from './protocol.ts'

export type Peers = {
  /** The number of this gateway. The first one is 0. */
  number: number
  others: readonly number[]
  /** Every other gateway has the entry until the returned function is called. */
  publish(entry: Entry): () => void
  /** Calls `use` with what others publish, and what that returned when it ends. Before `open`. */
  follow<K extends EntryKind>(kind: K, use: (entry: Entry<K>) => () => void): void
  /** Answers a question of others. Before `open`. */
  answer<K extends Asked>(operation: K, answer: (request: PeerRequest[K]) => Promise<PeerAnswer[K]>): void
  /** Rejects if that gateway does not answer. */
  ask<K extends Asked>(worker: number, operation: K, request: PeerRequest[K]): Promise<PeerAnswer[K]>
  open(): Promise<void>
  stop(): Promise<void>
}

type Asked = Exclude<PeerOperation, 'publish' | 'withdraw'>
type Question = { operation: PeerOperation; request: unknown }
type Link = { client: JsonLinesClient<Question, ReplyLine>; socket: Socket }

/** How soon a gateway that was restarted knows everything again. */
const AGAIN_MS = 100
/** One that reads more slowly is disconnected, and gets everything again. */
const MAX_UNREAD_BYTES = 16 * MAX_LINE_BYTES

export function createPeers({
  number,
  of,
  directory,
  clock,
  log,
}: {
  number: number
  /** How many gateways there are. */
  of: number
  /** Only their user may enter it. */
  directory: string
  clock: Clock
  log: Log
}): Peers {
  const others = Array.from({ length: of }, (_, other) => other).filter((other) => other !== number)
  const socketOf = (worker: number) => join(directory, `${worker}.sock`)
  const published = new Map<number, Entry>()
  const links = new Map<number, Link>()
  const inside = new Set<Socket>()
  const users = new Map<EntryKind, (entry: never) => () => void>()
  const answers = new Map<PeerOperation, (request: never) => Promise<object>>()
  const stopping = new AbortController()
  let lastId = 0
  let listening: Listening | null = null
  let linking: Promise<unknown> = Promise.resolve()

  // To others

  async function call({ client, socket }: Link, question: Question): Promise<unknown> {
    const reply = await client.call(question, peerOperations[question.operation].deadlineMs)
    if (socket.writableLength > MAX_UNREAD_BYTES) socket.destroy()
    if ('error' in reply) throw new Error(reply.error.publicMessage)
    return reply.answer
  }

  function tell(link: Link, operation: 'publish' | 'withdraw', request: object): void {
    // On the next connection it is told everything.
    call(link, { operation, request }).catch(() => void link.socket.destroy())
  }

  /** Resolves when the connection has ended. */
  function linkTo(worker: number): Promise<void> {
    const socket = connect(socketOf(worker))
    const client = openJsonLinesClient<Question, ReplyLine>(socket, {
      mostBytes: MAX_LINE_BYTES,
      hear: (line) => peerReply.parse(JSON.parse(line)),
      late: ({ operation }) => new Error(`gateway ${worker} did not answer "${operation}" in time`),
      over: (cause) => cause ?? new Error(`the connection to gateway ${worker} ended`),
    })
    return new Promise((resolve) => {
      socket.once('connect', () => {
        const link = { client, socket }
        links.set(worker, link)
        for (const [id, entry] of published) tell(link, 'publish', { id, entry })
      })
      socket.once('close', () => {
        links.delete(worker)
        resolve()
      })
    })
  }

  async function keepLink(worker: number): Promise<void> {
    while (!stopping.signal.aborted) {
      await linkTo(worker)
      await clock.sleep(AGAIN_MS, stopping.signal).catch(() => {})
    }
  }

  // From others

  function serve(socket: Socket): void {
    const held = new Map<number, () => void>()
    inside.add(socket)
    socket.on('error', (error) => log.debug({ error: error.message }, 'connection of another gateway lost'))
    socket.once('close', () => {
      inside.delete(socket)
      for (const end of held.values()) end()
    })
    serveJsonLines(socket, {
      mostBytes: MAX_LINE_BYTES,
      mostUnreadBytes: MAX_UNREAD_BYTES,
      mostCalls: MAX_ENTRIES,
      answer(line) {
        const question = parseLine(callLine, line)
        if (!question || !Object.hasOwn(peerOperations, question.operation)) return null
        const operation = question.operation as PeerOperation
        const request = peerOperations[operation].request.safeParse(question.request)
        return request.success ? reply(held, question.id, { operation, request: request.data }) : null
      },
    })
  }

  async function reply(
    held: Map<number, () => void>,
    id: number,
    { operation, request }: { operation: PeerOperation; request: object },
  ): Promise<ReplyLine> {
    if ('entry' in request) hold(held, request as PeerRequest['publish'])
    else if (operation === 'withdraw') drop(held, request as PeerRequest['withdraw'])
    try {
      return answerLine.parse({ id, answer: (await answers.get(operation)?.(request as never)) ?? {} })
    } catch (error) {
      log.error({ err: error, operation }, 'question of another gateway failed')
      return {
        id,
        error: { kind: 'failed', publicMessage: `This gateway cannot answer "${operation}" now.` },
      }
    }
  }

  function hold(held: Map<number, () => void>, { id, entry }: PeerRequest['publish']): void {
    const use = users.get(entry.kind)
    if (use && held.size < MAX_ENTRIES && !held.has(id)) held.set(id, use(entry as never))
  }

  function drop(held: Map<number, () => void>, { id }: PeerRequest['withdraw']): void {
    held.get(id)?.()
    held.delete(id)
  }

  return {
    number,
    others,
    publish(entry) {
      const id = ++lastId
      published.set(id, entry)
      for (const link of links.values()) tell(link, 'publish', { id, entry })
      return () => {
        if (published.delete(id)) for (const link of links.values()) tell(link, 'withdraw', { id })
      }
    },
    follow: (kind, use) => void users.set(kind, use),
    answer: (operation, answer) => void answers.set(operation, answer),
    async ask(worker, operation, request) {
      const link = links.get(worker)
      if (!link) throw new Error(`gateway ${worker} is not there`)
      const answer = await call(link, { operation, request })
      return peerOperations[operation].answer.parse(answer) as PeerAnswer[typeof operation]
    },
    async open() {
      listening = await listenForGroup(createServer(serve), socketOf(number), process.getegid?.() ?? 0)
      linking = Promise.all(others.map(keepLink))
    },
    async stop() {
      stopping.abort()
      for (const { socket } of links.values()) socket.destroy()
      await linking
      await listening?.close(() => {
        for (const socket of inside) socket.destroy()
      })
    },
  }
}
