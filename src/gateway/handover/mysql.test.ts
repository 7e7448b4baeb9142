// MySQL through the gateway of another host than the unit's: the gateway that the client comes to greets it, and gives its session
// an id, before it knows the unit. Servers are made up, and say what real ones say.

import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type RawOrigin, startRawOrigin } from '../../../test/support/gateway.ts'
import { type HostGateway, type HostGateways, startHosts } from '../../../test/support/handover.ts'
import { errorMessageOf } from '../sessions/outcomes.ts'
import { type Packet, readPacket, writePacket } from '../tcp/mysql/packets.ts'

const OK = Buffer.from('00000002000000', 'hex')
const OWN_ID = 7

let all: HostGateways
let near: HostGateway
let far: HostGateway
let server: RawOrigin
let clients: Socket[]
/** What the server was told after the logins. */
let told: string[]

beforeEach(async () => {
  all = await startHosts('near', 'far')
  const [one, other] = all.hosts
  if (!one || !other) throw new Error('there are two')
  near = one
  far = other
  clients = []
  told = []
  server = await startRawOrigin((unit) => void letIn(unit).catch(() => unit.destroy()))
})
afterEach(async () => {
  for (const client of clients) client.destroy()
  await all.close()
  await server.close()
})

async function packet(socket: Socket): Promise<Packet> {
  const found = await readPacket(socket, 100_000)
  if (found === null) throw new Error('the other side has ended')
  return found
}
const say = (socket: Socket, number: number, payload: Buffer) =>
  socket.write(writePacket({ number, payload }))

/** Without TLS, which the server does not offer. */
function greeting(): Buffer {
  const salt = Buffer.alloc(20, 0x55)
  const rest = Buffer.alloc(18)
  rest.writeUInt16LE(0xf7ff, 0)
  rest.writeUInt16LE(0x00bf, 5)
  rest.writeUInt8(21, 7)
  const head = Buffer.from(`\x0a10.11.2-MariaDB\0${String.fromCodePoint(OWN_ID)}\0\0\0`, 'latin1')
  return Buffer.concat([
    head,
    salt.subarray(0, 8),
    Buffer.alloc(1),
    rest,
    salt.subarray(8),
    Buffer.from('\0x\0'),
  ])
}

/** Asks for the password again, takes any, and answers each command. */
async function letIn(unit: Socket): Promise<void> {
  say(unit, 0, greeting())
  const { number } = await packet(unit)
  say(unit, number + 1, Buffer.from(`\xfemysql_native_password\0${'U'.repeat(20)}\0`, 'latin1'))
  await packet(unit)
  say(unit, number + 3, OK)
  for (;;) {
    told.push((await packet(unit)).payload.toString('latin1', 1))
    say(unit, 1, OK)
  }
}

function login(user: string): Buffer {
  const head = Buffer.alloc(32)
  head.writeUInt32LE(0x003a_a28d, 0)
  head.writeUInt32LE(0x0100_0000, 4)
  head.writeUInt8(45, 8)
  return Buffer.concat([
    head,
    Buffer.from(`${user}\0\x05guessshop\0mysql_native_password\0\x03\x01a\x00`, 'latin1'),
  ])
}

type Client = { client: TLSSocket; id: number }

/** Up to where its login is sent. */
async function begin(at: HostGateway, user: string, servername = ''): Promise<Client> {
  const tcp = connectTcp(at.gateway.mysqlPort, '127.0.0.1')
  clients.push(tcp)
  tcp.on('error', () => {})
  const greeted = (await packet(tcp)).payload
  const id = greeted.readUInt32LE(greeted.indexOf(0) + 1)
  const asks = login('').subarray(0, 32)
  asks.writeUInt32LE(0x003a_aa8d, 0)
  say(tcp, 1, asks)
  const client = connectTls({ socket: tcp, rejectUnauthorized: false, servername })
  clients.push(client)
  client.on('error', () => {})
  await once(client, 'secureConnect')
  say(client, 2, login(user))
  return { client, id }
}

async function enter(at: HostGateway, user: string, servername?: string): Promise<Client> {
  const { client, id } = await begin(at, user, servername)
  const { number } = await packet(client)
  say(client, number + 1, Buffer.from('right'))
  expect((await packet(client)).payload).toEqual(OK)
  return { client, id }
}

async function query(client: Socket, text: string): Promise<void> {
  say(client, 0, Buffer.from(`\x03${text}`, 'latin1'))
  expect((await packet(client)).payload).toEqual(OK)
}

const labelOf = (host: string) => host.split('.')[0] ?? ''

describe('a MySQL client at the gateway of another host', () => {
  it.each(['in TLS', 'before its user'] as const)('is let in if it names the unit %s', async (where) => {
    const host = far.expose(server.port, { protocol: 'mysql' })
    const { client } =
      where === 'in TLS' ? await enter(near, 'keeper', host) : await enter(near, `${labelOf(host)}.keeper`)
    await query(client, 'select 1')
    expect(told).toEqual(['select 1'])
    expect(near.gateway.use).toEqual([])
    client.end()
    await once(client, 'close')
    await expect.poll(() => near.gateway.gateway.count()).toEqual({ connections: 0, visits: 0 })
    await expect.poll(() => far.gateway.gateway.count()).toEqual({ connections: 0, visits: 0 })
  })

  it('kills a session by the id that any gateway gave it', async () => {
    const host = far.expose(server.port, { protocol: 'mysql' })
    const [one, other] = [await enter(near, 'keeper', host), await enter(far, 'keeper', host)]
    await query(one.client, `kill query ${other.id}`)
    await query(other.client, `kill query ${one.id}`)
    expect(told).toEqual([`kill query ${OWN_ID}`, `kill query ${OWN_ID}`])
  })

  it('is told if the host is away', async () => {
    const host = far.expose(server.port, { protocol: 'mysql' })
    await far.leave()
    const { client } = await begin(near, 'keeper', host)
    const { payload } = await packet(client)
    expect([payload[0], payload.toString('latin1')]).toEqual([
      0xff,
      expect.stringContaining(errorMessageOf({ kind: 'host-away' }).title),
    ])
    expect(told).toEqual([])
  })
})
