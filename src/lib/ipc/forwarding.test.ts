// Calls that one server hands to another over mutual TLS.

import { mkdtemp, rm } from 'node:fs/promises'
import { createServer as createHttpServer, type Server } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { issueIdentity } from '../../certificates/fleet-ca.ts'
import { type FleetIdentity, type FleetRole, parseIdentity } from '../fleet-identity.ts'
import { silentLog } from '../log.ts'
import { anyServer, type FleetListener, fleetTls, listenForFleet } from './fleet-tls.ts'
import { CALLS_PROTOCOL, handToLeader, takeCalls, tellStopping } from './forwarding.ts'

const HOST = '127.0.0.1'
let directory: string
let identity: FleetIdentity
let leader: FleetListener
let api: Server
const links = new Set<Socket>()
let stopped = 0

const identityOf = async (role: FleetRole) =>
  parseIdentity(await issueIdentity(directory, { role, host: 'main' }, new Date()))

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-forwarding-'))
  identity = await identityOf('server')
  api = createHttpServer((request, response) => {
    void text(request).then((body) => response.end(`${request.socket.remoteAddress} ${body}`))
  })
  api.listen(0, HOST)
  await once(api, 'listening')
  const onMember = (socket: Parameters<typeof takeCalls>[0]) => {
    links.add(socket)
    void takeCalls(
      socket,
      (caller) => api.emit('connection', caller),
      () => (stopped += 1),
    )
  }
  const mayCall = { server: true, engine: false, gateway: false }
  const inside = { mayCall, protocols: [CALLS_PROTOCOL], onMember, log: silentLog }
  leader = await listenForFleet({ host: HOST, port: 0, identity }, inside)
})
afterAll(async () => {
  api.close()
  await leader.close(() => {
    for (const link of links) link.destroy()
  })
  await rm(directory, { recursive: true })
})

/** What a caller gets that connects to a server which hands it over. */
async function ask(bytes: string): Promise<string> {
  const to = { host: HOST, port: leader.port }
  const standby = createServer({ pauseOnConnect: true }, (caller) => {
    Object.defineProperty(caller, 'remoteAddress', { value: '2001:db8::7' })
    void handToLeader(caller, { leader: to, identity }).then((link) => {
      if (!link) return void caller.destroy()
      caller.pipe(link)
      link.pipe(caller)
    })
  }).listen(0, HOST)
  await once(standby, 'listening')
  const caller = connect((standby.address() as AddressInfo).port, HOST)
  caller.write(bytes)
  const said = await text(caller)
  standby.close()
  return said
}

it('a call that is handed to another server is of its caller there, and its body is whole', async () => {
  const body = 'x'.repeat(100_000)
  const head = `POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n`
  expect(await ask(head + body)).toContain(`2001:db8::7 ${body}`)
})

it.each(['{"address":"nobody"}\n', 'GET / HTTP/1.1\r\n\r\n', `${'x'.repeat(200)}\n`])(
  'a server that says something else than who calls is disconnected: %j',
  async (line) => {
    const link = connectTls({
      host: HOST,
      port: leader.port,
      ...fleetTls(identity),
      ...anyServer,
      ALPNProtocols: [CALLS_PROTOCOL],
    })
    link.write(line)
    expect(await text(link)).toBe('')
  },
)

it('a server that leads hears that another one stops', async () => {
  expect(await tellStopping({ leader: { host: HOST, port: leader.port }, identity })).toBe(true)
  expect(stopped).toBe(1)
})

it('nothing is handed to what is not a server of the fleet', async () => {
  const engine = await identityOf('engine')
  const other = await listenForFleet(
    { host: HOST, port: 0, identity: engine },
    {
      mayCall: { server: true, engine: true, gateway: true },
      protocols: [CALLS_PROTOCOL],
      onMember: (socket) =>
        void takeCalls(
          socket,
          () => {},
          () => {},
        ),
      log: silentLog,
    },
  )
  const caller = connect(leader.port, HOST)
  await once(caller, 'connect')
  expect(await handToLeader(caller, { leader: { host: HOST, port: other.port }, identity })).toBe(null)
  caller.destroy()
  await other.close(() => {})
})
