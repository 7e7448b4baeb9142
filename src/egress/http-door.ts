// Port 80 of restricted machines: every request is decided by its Host and sent on by itself, so that neither a second
// request on a connection nor one hidden in another reaches a host that is not listed.

import {
  Agent,
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { decide, isAllowed, notAllowed } from './decide.ts'
import { dialName } from './dial.ts'
import { type Door, turnsOf } from './door.ts'
import { noteAllowed, noteRefused } from './egress-log.ts'
import { refuse, refuseUpgrade, type Refused, unreachable } from './refused.ts'
import { pairs, passedHeaders, passAnswer } from './request-headers.ts'
import { work } from './shares.ts'
import { through } from './through.ts'
import { isUpgrade, passUpgrade } from './upgrade.ts'

const PORT = 80
const HEAD_MS = 10_000
const HEAD_BYTES = 16 * 1024

export function createHttpDoor(door: Door): Server {
  const server = createServer(
    {
      maxHeaderSize: HEAD_BYTES,
      headersTimeout: HEAD_MS,
      requestTimeout: 0,
      noDelay: true,
      shouldUpgradeCallback: isUpgrade,
    },
    (request, response) => {
      pass(door, request, response).catch(() => request.socket.destroy())
    },
  )
  server.on('connection', (socket: Socket) => {
    const release = door.enter(socket)
    if (release !== null) socket.once('close', release)
  })
  server.on('upgrade', (request, socket, head) => {
    upgrade(door, request, socket, head).catch(() => socket.destroy())
  })
  server.on('connect', (_request, socket) => socket.destroy())
  server.on('clientError', (_error, socket) => socket.destroy())
  return server
}

async function pass(door: Door, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { socket } = request
  const went = await begin(door, request)
  if ('status' in went) return refuse(response, went)
  const { outgoing, forget, name } = went
  const turn = turnsOf(door, socket.remoteAddress ?? '')
  response.once('close', () => {
    forget()
    outgoing.destroy()
  })
  outgoing.on('error', () => {
    if (response.headersSent) socket.destroy()
    else refuse(response, unreachable(name))
  })
  outgoing.on('response', (answered) => passAnswer(answered, response, { client: socket, turn }))
  through(null, request, turn).pipe(outgoing)
}

async function upgrade(door: Door, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  socket.on('error', () => socket.destroy())
  const went = await begin(door, request)
  if ('status' in went) return refuseUpgrade(socket, went)
  const { outgoing, forget, name } = went
  const turn = turnsOf(door, request.socket.remoteAddress ?? '')
  socket.once('close', () => {
    forget()
    outgoing.destroy()
  })
  passUpgrade(outgoing, { socket, head, turn, refusalFor: () => unreachable(name) })
}

/** Decides a request, connects, and returns the request to the host with its head. */
async function begin(
  door: Door,
  request: IncomingMessage,
): Promise<{ outgoing: ClientRequest; forget: () => void; name: string } | Refused> {
  const { socket } = request
  const machine = socket.remoteAddress ?? ''
  const host = hostOf(request)
  await door.turn(machine, work.name, socket)
  const decision = await decide(door, machine, host, PORT)
  const noting = { door, machine, protocol: 'http', port: PORT } as const
  if (decision.kind === 'refused') {
    noteRefused(noting, decision)
    return notAllowed(decision.reason, decision.name, PORT)
  }
  const gone = new AbortController()
  socket.once('close', () => gone.abort())
  const connection = await dialName(decision.addresses, PORT, gone.signal)
  noteAllowed(noting, decision, connection)
  if (connection === null) return unreachable(decision.name)
  if (!isAllowed(door.link, machine, decision.name, PORT)) {
    connection.destroy()
    return notAllowed('not_listed', decision.name, PORT)
  }
  const cut = () => {
    socket.resetAndDestroy()
    connection.destroy()
  }
  const address = connection.remoteAddress
  const forget = door.open.add(machine, { name: decision.name, port: PORT, address, cut })
  const outgoing = httpRequest({
    agent: agentOver(connection),
    method: request.method ?? 'GET',
    path: pathOf(request),
    setHost: false,
  })
  for (const [name, value] of passedHeaders(request)) outgoing.appendHeader(name, value)
  const { upgrade: protocol = '', 'transfer-encoding': encoding } = request.headers
  if (isUpgrade(request)) outgoing.setHeader('connection', 'upgrade').setHeader('upgrade', protocol)
  else outgoing.setHeader('connection', 'close')
  if (encoding !== undefined) outgoing.setHeader('transfer-encoding', 'chunked')
  return { outgoing, forget, name: decision.name }
}

/** The host of a request; null if it names none, two, or another port or target than its Host. */
function hostOf(request: IncomingMessage): string | null {
  const given = pairs(request.rawHeaders).filter(([name]) => name.toLowerCase() === 'host')
  const host = given.length === 1 ? (given[0]?.[1] ?? '').replace(/:80$/, '') : ''
  const url = request.url ?? '/'
  if (host === '' || url.startsWith('/') || url === '*') return host === '' ? null : host
  const target = URL.parse(url)
  return target?.protocol === 'http:' && target.port === '' && target.hostname === host.toLowerCase()
    ? host
    : null
}

function pathOf({ url = '/' }: IncomingMessage): string {
  if (url.startsWith('/') || url === '*') return url
  const target = URL.parse(url)
  return target ? `${target.pathname}${target.search}` : '/'
}

function agentOver(connection: Socket): Agent {
  const agent = new Agent()
  Object.assign(agent, { createConnection: () => connection })
  return agent
}
