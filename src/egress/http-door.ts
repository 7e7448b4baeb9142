// Port 80 of restricted machines: every request is decided by its Host and sent on by itself, so that neither a second
// request on a connection nor one hidden in another reaches a host that is not listed.

import {
  Agent,
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { decide, isAllowed, type RefusedReason, refusalText } from './decide.ts'
import { dialName } from './dial.ts'
import type { Door } from './door.ts'
import { noteAllowed, noteRefused } from './noting.ts'
import { pairs, passedHeaders, passAnswer } from './request-headers.ts'
import { splice } from './splice.ts'

const PORT = 80
const HEAD_MS = 10_000
const HEAD_BYTES = 16 * 1024

export function createHttpDoor(door: Door): Server {
  const server = createServer(
    { maxHeaderSize: HEAD_BYTES, headersTimeout: HEAD_MS, requestTimeout: 0, noDelay: true },
    (request, response) => {
      pass(door, request, response).catch(() => request.socket.destroy())
    },
  )
  server.on('connection', (socket: Socket) => {
    const release = door.enter(socket)
    if (release !== null) socket.once('close', release)
  })
  server.on('upgrade', (request, socket, head) => {
    passUpgrade(door, request, socket, head).catch(() => socket.destroy())
  })
  server.on('connect', (_request, socket) => socket.destroy())
  server.on('clientError', (_error, socket) => socket.destroy())
  return server
}

async function pass(door: Door, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { socket } = request
  const went = await begin(door, request)
  if (went.reason !== undefined) return refuse(response, went.reason, went.name)
  const { outgoing, forget } = went
  response.once('close', () => {
    forget()
    outgoing.destroy()
  })
  outgoing.on('error', () => {
    if (response.headersSent) socket.destroy()
    else answer(response, 502, 'host_unreachable', 'The host did not answer.')
  })
  outgoing.on('response', (answered) => passAnswer(answered, response, { client: socket }))
  request.pipe(outgoing)
}

async function passUpgrade(
  door: Door,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  socket.on('error', () => socket.destroy())
  const went = await begin(door, request)
  if (went.reason !== undefined) return void socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n')
  const { outgoing, forget } = went
  socket.once('close', () => {
    forget()
    outgoing.destroy()
  })
  outgoing.on('error', () => socket.destroy())
  // A server that does not upgrade is asked again without.
  outgoing.on('response', () => socket.destroy())
  outgoing.on('upgrade', (answered, host, first) => {
    const lines = pairs(answered.rawHeaders).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(`HTTP/1.1 101 ${answered.statusMessage}\r\n${lines.join('')}\r\n`)
    if (first.length > 0) socket.write(first)
    if (head.length > 0) host.write(head)
    splice(socket as Socket, host)
  })
  outgoing.end()
}

/** Decides a request, connects, and returns the request to the host with its head. */
async function begin(door: Door, request: IncomingMessage) {
  const { socket } = request
  const machine = socket.remoteAddress ?? ''
  const host = hostOf(request)
  const decision = await decide(door, machine, host, PORT)
  const noting = { door, machine, protocol: 'http', port: PORT } as const
  if (decision.kind === 'refused') {
    noteRefused(noting, decision)
    return { reason: decision.reason, name: decision.name }
  }
  const gone = new AbortController()
  socket.once('close', () => gone.abort())
  const connection = await dialName(decision.addresses, PORT, gone.signal)
  noteAllowed(noting, decision, connection)
  if (connection === null) return { reason: 'unknown_name' as const, name: decision.name }
  if (!isAllowed(door.link, machine, decision.name, PORT)) {
    connection.destroy()
    return { reason: 'not_listed' as const, name: decision.name }
  }
  const cut = () => {
    socket.resetAndDestroy()
    connection.destroy()
  }
  const forget = door.open.add(machine, { name: decision.name, port: PORT, cut })
  const outgoing = httpRequest({
    agent: agentOver(connection),
    method: request.method ?? 'GET',
    path: pathOf(request),
    setHost: false,
  })
  for (const [name, value] of passedHeaders(request)) outgoing.appendHeader(name, value)
  const { upgrade, 'transfer-encoding': encoding } = request.headers
  if (upgrade !== undefined) outgoing.setHeader('connection', 'upgrade').setHeader('upgrade', upgrade)
  else outgoing.setHeader('connection', 'close')
  if (encoding !== undefined) outgoing.setHeader('transfer-encoding', 'chunked')
  return { outgoing, forget }
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

function refuse(response: ServerResponse, reason: RefusedReason, name: string | null): void {
  answer(response, 403, 'egress_refused', refusalText(reason, name, PORT))
}

function answer(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' })
  response.end(`${JSON.stringify({ error: { code, message } })}\n`)
}
