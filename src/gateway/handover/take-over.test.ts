// The door for visits that came to the gateways of other hosts: who may come in, and what they may say.

import { type EventEmitter, once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { duplexPair } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startOrigin } from '../../../test/support/gateway.ts'
import { type HostGateway, type HostGateways, startHosts } from '../../../test/support/handover.ts'
import type { FleetIdentity } from '../../lib/fleet-identity.ts'
import { fleetTls } from '../../lib/ipc/fleet-tls.ts'
import { answers, HANDOVER_PROTOCOL } from './protocol.ts'

const HOST = '127.0.0.1'

let all: HostGateways
let near: HostGateway
let far: HostGateway
let clients: Socket[]

beforeEach(async () => {
  all = await startHosts('near', 'far')
  const [one, other] = all.hosts
  if (!one || !other) throw new Error('there are two')
  near = one
  far = other
  clients = []
})
afterEach(async () => {
  for (const client of clients) client.destroy()
  await all.close()
})

const noted = (client: TLSSocket): TLSSocket => {
  clients.push(client)
  ;(client as EventEmitter).on('error', () => {})
  return client
}

describe('the door for visits of other hosts', () => {
  function connectAs(identity: FleetIdentity): TLSSocket {
    const tls = { ...fleetTls(identity), ca: far.identity.authority, checkServerIdentity: () => undefined }
    return noted(connectTls({ host: HOST, port: far.doorPort, ...tls, ALPNProtocols: [HANDOVER_PROTOCOL] }))
  }

  async function isAnswered(identity: FleetIdentity, line: object | string): Promise<boolean> {
    const socket = connectAs(identity)
    let isThere = false
    socket.on('data', (chunk: Buffer) => {
      isThere ||= chunk[0] === answers.yes || chunk[0] === answers.no
      socket.destroy()
    })
    socket.write(`${typeof line === 'string' ? line : JSON.stringify(line)}\n`)
    await new Promise((resolve) => socket.once('close', resolve))
    return isThere
  }

  const visit = { kind: 'requests', address: '192.0.2.1', isSecure: true }

  it('is open for the gateways of hosts that are known', async () => {
    expect(await isAnswered(near.identity, visit)).toBe(true)
  })

  it.each([
    ['an engine', { role: 'engine', host: 'near' }, false],
    ['the server', { role: 'server', host: 'near' }, false],
    ['a host that is none of the service', { role: 'gateway', host: 'west' }, false],
    ["its own host's gateway", { role: 'gateway', host: 'far' }, false],
    ['the gateway of another fleet', { role: 'gateway', host: 'near' }, true],
  ] as const)('is closed to %s', async (_who, member, isStranger) => {
    expect(await isAnswered(await all.issue(member, isStranger), visit)).toBe(false)
  })

  it.each([
    ['that is no JSON', 'GET / HTTP/1.1'],
    ['of another kind', { kind: 'files' }],
    ['with an address that a unit could be misled by', { ...visit, address: '1.2.3.4, 5.6.7.8' }],
    ['with a field of its own', { ...visit, more: true }],
    ['that does not end', 'x'.repeat(10_000)],
  ])('is closed to who says a line %s', async (_what, line) => {
    expect(await isAnswered(near.identity, line)).toBe(false)
  })

  it('ends what has come from a host, once that was removed', async () => {
    const socket = connectAs(near.identity)
    socket.write(`${JSON.stringify(visit)}\n`)
    await once(socket, 'data')
    all.listed.splice(0, 1)
    await new Promise((resolve) => socket.resume().once('close', resolve))
    expect(await isAnswered(near.identity, visit)).toBe(false)
  })

  it('waits for no host whose handshake ends after it was closed', async () => {
    const wire = connectTcp(far.doorPort, HOST)
    clients.push(wire)
    const [clientSide, wireSide] = duplexPair()
    const tls = { ...fleetTls(near.identity), checkServerIdentity: () => undefined }
    noted(connectTls({ socket: clientSide, ...tls, ALPNProtocols: [HANDOVER_PROTOCOL] }))
    wireSide.pipe(wire)
    const [greeting] = (await once(wire, 'data')) as [Buffer]
    const left = far.leave()
    wireSide.write(greeting)
    wire.pipe(wireSide)
    await left
  })

  it('hands nothing over again: what is of a third host is unknown there', async () => {
    const origin = await startOrigin((_request, response) => response.end())
    const host = far.expose(origin.port, { hostId: 'host_near' })
    const socket = connectAs(near.identity)
    socket.write(`${JSON.stringify(visit)}\n`)
    expect((await once(socket, 'data'))[0][0]).toBe(answers.yes)
    near.gateway.onWake = far.gateway.onWake = async () => ({ kind: 'refused', reason: 'gone' })
    near.gateway.isAwake = far.gateway.isAwake = () => false
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    expect(String((await once(socket, 'data'))[0])).toContain(' 404 ')
    await delay(10)
    expect(near.gateway.gateway.count().connections).toBe(0)
    await origin.close()
  })
})
