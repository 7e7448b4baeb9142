// A gateway on a host without a database, with its server over TLS: both ends are real, with visitors before them and two
// hosts with engines in memory behind them.

import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { lineSink } from '../../test/support/logged.ts'
import type { TestDomain } from '../../test/support/domain.ts'
import { certificate, listen, type Origin, startOrigin } from '../../test/support/gateway.ts'
import { whenFree } from '../../test/support/taken-port.ts'
import { createTwoHosts, type OwnedUnit, type TwoHosts } from '../../test/support/two-hosts.ts'
import { type App, createApp } from '../app.ts'
import { issueIdentity } from '../certificates/fleet-ca.ts'
import { loadConfig } from '../config.ts'
import { recallGateways } from '../domain/endpoints/gateways.ts'
import { parseEndpointLabel } from '../contract/endpoint-label.ts'
import { exposeUnit } from '../domain/units/expose.ts'
import { getUnit } from '../domain/units/get.ts'
import { sleepUnit } from '../domain/units/sleep.ts'
import { stopUnit } from '../domain/units/stop.ts'
import { systemClock } from '../lib/clock.ts'
import { type FleetIdentity, type FleetMember, parseIdentity } from '../lib/fleet-identity.ts'
import { freePort } from '../lib/free-port.ts'
import { fleetTls } from '../lib/ipc/fleet-tls.ts'
import { newId } from '../lib/ids.ts'
import { silentLog } from '../lib/log.ts'
import { runOrThrow } from '../lib/process.ts'
import { insertHost, setHostState } from '../store/hosts.ts'
import { createEndpointPorts } from './listen/endpoint-ports.ts'
import { createEndpointRoutes } from './routing/endpoint-routes.ts'
import { type RoutingSource, routesOfServer } from './routing/routing-source.ts'
import { createGateway } from './server.ts'
import { isAuthorized } from './routing/private-link.ts'
import { connectToServer, type ServerClient } from './server-link/client.ts'
import { type FarGateways, MAX_CONNECTIONS_OF_HOST, serveFarGateways } from './server-link/far-server.ts'
import { serveWakes } from './server-link/server.ts'
import { LINK_PROTOCOL } from './server-link/protocol.ts'
import { createWakeLeases } from './server-link/wake-leases.ts'

const HOST = '127.0.0.1'

let domain: TestDomain
let app: App
let directory: string
let origin: Origin
let far: OwnedUnit & { id: string }
let near: OwnedUnit
let makeUnitOn: TwoHosts['makeUnitOn']
let serving: FarGateways
let identities: Record<'server' | 'gateway', FleetIdentity>

const identityOf = async (member: FleetMember, dataDir = directory) =>
  parseIdentity(await issueIdentity(dataDir, member, new Date()))

const settings = loadConfig({
  BERTH_DOMAIN: 'east.example',
  BERTH_GATEWAY_TLS: '127.0.0.1:8443',
  BERTH_GATEWAY_PORTS: '21000-21009',
})

beforeAll(async () => {
  const both = await createTwoHosts({ BERTH_GATEWAY_PORTS: '20000-20009' })
  ;({ domain, app, makeUnitOn } = both)
  directory = await mkdtemp(join(tmpdir(), 'berth-far-gateway-'))
  origin = await startOrigin((_request, response) => response.end('from the unit'))
  identities = {
    server: await identityOf({ role: 'server', host: 'main' }),
    gateway: await identityOf({ role: 'gateway', host: 'east' }),
  }
  far = { id: both.far, ...(await makeUnitOn(both.far)) }
  near = await makeUnitOn(both.near, 'near')
  // What listens in its machine is the test's origin.
  await app.db.updateTable('units').set({ address: HOST }).where('id', '=', far.unit.id).execute()
}, 60_000)
afterAll(async () => {
  await origin.close()
  await rm(directory, { recursive: true })
  await domain.close()
})
beforeEach(async () => {
  serving = await serve(await freePort(HOST))
})
afterEach(async () => {
  await serving.close()
})

const serve = async (port: number, by = app) =>
  await serveFarGateways(by, { host: HOST, port, identity: identities.server })

type Gateway = { server: ServerClient; source: RoutingSource; port: number; close(): Promise<void> }

/** As gatewayProcess puts it together on a host without a database. */
async function startFarGateway(port = serving.port): Promise<Gateway> {
  const clock = systemClock
  const address = { host: HOST, port, identity: () => identities.gateway, settings }
  const server = connectToServer({ address, clock })
  const source = routesOfServer(server)
  const use = createWakeLeases({ server, clock, log: silentLog })
  const routes = createEndpointRoutes({ findAll: source.findRoutes, clock })
  const certificates = {
    find: async () => undefined,
    follow: (follow: (pem: string) => void) => follow(certificate()),
    stop: async () => {},
  }
  const range = settings.gatewayPorts ?? { first: 0, last: 0 }
  const ports = createEndpointPorts({
    host: HOST,
    findAll: () => source.findPorts(range),
    clock,
    log: silentLog,
  })
  const gateway = createGateway({
    certificates,
    domain: settings.domain,
    ports,
    routes,
    waker: use.waker,
    activity: use.activity,
    clock,
    log: silentLog,
  })
  return {
    server,
    source,
    port: await listen(gateway.http),
    close: async () => {
      await gateway.close()
      await use.stop()
    },
  }
}

async function visit(gateway: Gateway, url: string): Promise<{ status: number; text: string }> {
  const headers = { host: new URL(url).host }
  const asked = request({ host: HOST, port: gateway.port, headers, agent: false }).end()
  const [response] = await once(asked, 'response')
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return { status: response.statusCode, text }
}

const atOnce = { sleep: '30m', stack: false, now: true }

const nameIn = (url: string) => new URL(url).hostname.split('.')[0] ?? ''

async function expose({ caller, unit }: OwnedUnit): Promise<string> {
  return (await exposeUnit(app, caller, unit.id, { port: origin.port, mode: 'public', rotate: false })).url
}

const said = async (gateway: Gateway) => {
  await gateway.server.ask('used', { unitIds: [] })
  await expect.poll(() => app.gateways.get(far.id)).toBeDefined()
}

describe('the gateway of another host', () => {
  let gateway: Gateway
  beforeEach(async () => {
    gateway = await startFarGateway()
    await said(gateway)
  })
  afterEach(async () => await gateway.close())

  it('wakes a unit of its host for a visitor', async () => {
    const url = await expose(far)
    expect(url).toMatch(/^https:\/\/web-[a-z2-7]{10}\.east\.example:8443$/)
    await sleepUnit(app, far.caller, far.unit.id, atOnce)
    expect((await getUnit(app, far.caller, far.unit.id)).state).toBe('sleeping')
    expect(await visit(gateway, url)).toEqual({ status: 200, text: 'from the unit' })
    expect((await getUnit(app, far.caller, far.unit.id)).state).toBe('running')
  })

  it('knows nothing of names, addresses, ports and units of other hosts', async () => {
    const url = await expose(near)
    expect(new URL(url).hostname).toMatch(/\.berth\.localhost$/)
    const tcp = { port: 5432, protocol: 'postgres', mode: 'public', rotate: false } as const
    await exposeUnit(app, near.caller, near.unit.id, tcp)
    expect(await gateway.source.findRoutes([nameIn(url)])).toEqual([])
    expect((await visit(gateway, url.replace('berth.localhost', 'east.example'))).status).toBe(404)
    expect(await gateway.source.findPorts({ first: 20_000, last: 21_009 })).toEqual([])
    const { internalHost: name, id } = near.unit
    const { address } = await app.db
      .selectFrom('units')
      .select('address')
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    for (const askerAddress of [HOST, address ?? ''])
      expect(await gateway.source.findAddress({ askerAddress, name })).toBe(null)

    await sleepUnit(app, near.caller, near.unit.id, atOnce)
    const refused = { kind: 'refused', reason: 'gone' }
    expect(await gateway.server.ask('use', { unitId: near.unit.id })).toEqual(refused)
    const both = [near.unit.id, far.unit.id]
    expect(await gateway.server.ask('used', { unitIds: both })).toEqual({ awake: [far.unit.id] })
    await gateway.server.ask('visits', { unitIds: both, endpoints: { [near.unit.id]: [newId('endpoint')] } })
    expect(app.activity.uses.ids()).toEqual([far.unit.id])
    expect(app.activity.sessions.endpointsOf(near.unit.id)).toEqual([])
    expect((await getUnit(app, near.caller, near.unit.id)).state).toBe('sleeping')
  })

  it('learns where private names of other hosts lead, and neither their secrets nor their addresses', async () => {
    const routeOf = async ({ caller, unit }: OwnedUnit) => {
      const spec = { port: origin.port, mode: 'private', rotate: true } as const
      const { hostname } = new URL((await exposeUnit(app, caller, unit.id, spec)).url)
      const label = parseEndpointLabel(hostname.split('.')[0] ?? '')
      const asked = { names: [label?.name ?? ''], everywhere: true as const }
      const [route] = (await gateway.server.ask('routes', asked)).routes
      const secretHash = route?.secretHash ? Buffer.from(route.secretHash, 'base64') : Buffer.alloc(0)
      return { route, opens: isAuthorized({ secretHash }, label?.secret ?? null) }
    }
    expect(await routeOf(far)).toMatchObject({
      route: { hostId: far.unit.host.id, address: HOST },
      opens: true,
    })
    expect(await routeOf(near)).toMatchObject({
      route: { hostId: near.unit.host.id, address: null, secretHash: '' },
      opens: false,
    })
  })

  it('resolves names of its own units, and has ports of their endpoints', async () => {
    await expose(far)
    const { internalHost, id } = far.unit
    expect(await gateway.source.findAddress({ askerAddress: HOST, name: internalHost })).toBe(HOST)
    const tcp = { port: 5432, protocol: 'postgres', mode: 'public', rotate: false } as const
    const { url } = await exposeUnit(app, far.caller, id, tcp)
    expect(url).toMatch(/^postgres:\/\/[a-z0-9-]+\.east\.example:8443/)
    const endpoint = (await getUnit(app, far.caller, id)).endpoints.find(({ port }) => port === 5432)
    expect(endpoint?.portWithoutSni).toBe(21_000)
    const found = await gateway.source.findPorts({ first: 1024, last: 65_535 })
    expect(found).toEqual([
      { port: 21_000, name: nameIn(url.replace('postgres', 'http')), protocol: 'postgres' },
    ])
  })

  it('is told of runs of its own units alone', async () => {
    const ended: string[] = []
    const done = new AbortController()
    let isConnected = false
    const address = { host: HOST, port: serving.port, identity: () => identities.gateway, settings }
    const following = connectToServer({ address, clock: systemClock }).follow(
      {
        onConnected: () => (isConnected = true),
        onRunEnded: (id) => ended.push(id),
        onDisconnected: () => {},
      },
      done.signal,
    )
    await expect.poll(() => isConnected).toBe(true)
    const other = await makeUnitOn(app.fleet.local().id)
    await stopUnit(app, other.caller, other.unit.id)
    const own = await makeUnitOn(far.id)
    await stopUnit(app, own.caller, own.unit.id)
    await expect.poll(() => ended).toEqual([own.unit.id])
    done.abort()
    await following
  })

  it('is known to be connected, until it ends', async () => {
    expect([...app.connectedGateways]).toEqual([far.id])
    await gateway.close()
    await expect.poll(() => [...app.connectedGateways]).toEqual([])
    gateway = await startFarGateway()
    await said(gateway)
  })

  it('goes on after its server was restarted, which still knows where its units are visited', async () => {
    const url = await expose(far)
    await serving.close()
    const next = createApp({ ...domain.app, clock: domain.clock, fleet: app.fleet })
    await recallGateways(next)
    expect((await getUnit(next, far.caller, far.unit.id)).endpoints.map((each) => each.url)).toContain(url)
    await sleepUnit(next, far.caller, far.unit.id, atOnce)
    const visiting = visit(gateway, url)
    serving = await whenFree(() => serve(serving.port, next))
    expect(await visiting).toEqual({ status: 200, text: 'from the unit' })
  })

  it('keeps its visits when another gateway tells of its own', async () => {
    await gateway.server.ask('visits', { unitIds: [far.unit.id] })
    app.activity.sessions.tell({ hostId: app.fleet.local().id, worker: 0 }, [near.unit.id])
    expect(app.activity.uses.ids().toSorted()).toEqual([far.unit.id, near.unit.id].toSorted())
    app.activity.sessions.end(app.fleet.local().id)
    expect(app.activity.uses.ids()).toEqual([far.unit.id])
    await gateway.server.ask('visits', { unitIds: [] })
    expect(app.activity.uses.ids()).toEqual([])
  })

  it.each([
    ['a domain with a slash', { domain: 'east.example/x', url: 'https://east.example/x' }],
    ['a URL of another domain', { url: 'https://other.example' }],
    ['a URL with more than an origin', { url: 'https://east.example/?' }],
    ['a URL of another scheme', { url: 'javascript://east.example' }],
    ['a field of its own', { more: true }],
  ])('is disconnected if it says %s of itself', async (_what, given) => {
    const own = { domain: 'east.example', url: 'https://east.example', tlsPort: 1, mysqlPort: 1, ports: null }
    const facts = { ...own, ...given }
    await expect(gateway.server.ask('hello', facts)).rejects.toThrow('ended')
    expect(app.gateways.get(far.id)?.url).toBe('https://east.example:8443')
  })
})

describe("the gateway of the server's own host", () => {
  it('wakes no unit that it cannot reach', async () => {
    const socketPath = join(directory, 'wake.sock')
    const wakes = await serveWakes(app, { socketPath, socketGid: process.getegid?.() ?? 0 })
    const server = connectToServer({ address: { socketPath }, clock: systemClock })
    await sleepUnit(app, far.caller, far.unit.id, atOnce)
    expect(await server.ask('use', { unitId: far.unit.id })).toEqual({ kind: 'refused', reason: 'gone' })
    expect((await getUnit(app, far.caller, far.unit.id)).state).toBe('sleeping')
    expect(await server.ask('used', { unitIds: [far.unit.id] })).toEqual({ awake: [] })
    await wakes.close()
  })
})

describe('the door for gateways of other hosts', () => {
  /** Whether the server greets who comes with this identity. */
  async function isGreeted(identity: FleetIdentity, options = {}): Promise<boolean> {
    const socket = connectWith(identity, options)
    let heard = ''
    socket.on('data', (chunk) => {
      heard += String(chunk)
      socket.end()
    })
    await closed(socket)
    return heard !== ''
  }

  function connectWith(identity: FleetIdentity, options = {}): TLSSocket {
    const tls = {
      ...fleetTls(identity),
      ca: identities.server.authority,
      checkServerIdentity: () => undefined,
    }
    const socket = connectTls({
      host: HOST,
      port: serving.port,
      ...tls,
      ALPNProtocols: [LINK_PROTOCOL],
      ...options,
    })
    return socket.on('error', () => {}).resume()
  }

  const closed = (socket: TLSSocket) =>
    new Promise<void>((resolve) => {
      if (socket.destroyed) resolve()
      else socket.once('close', () => resolve())
    })

  it('is open for the gateway of a host that is known', async () => {
    expect(await isGreeted(identities.gateway)).toBe(true)
  })

  it.each([
    ['an engine', { role: 'engine', host: 'east' }],
    ['a server', { role: 'server', host: 'east' }],
    ['the gateway of a host that it does not know', { role: 'gateway', host: 'west' }],
  ] as const)('is closed to %s', async (_who, member) => {
    expect(await isGreeted(await identityOf(member))).toBe(false)
  })

  it('is closed to the gateway of its own host, which has a socket', async () => {
    const { name } = app.fleet.local()
    expect(await isGreeted(await identityOf({ role: 'gateway', host: name }))).toBe(false)
  })

  it('is closed to the gateway of another fleet, and to one that speaks an older TLS', async () => {
    const stranger = await mkdtemp(join(tmpdir(), 'berth-other-fleet-'))
    expect(await isGreeted(await identityOf({ role: 'gateway', host: 'east' }, stranger))).toBe(false)
    await rm(stranger, { recursive: true })
    const older = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' }
    expect(await isGreeted(identities.gateway, older)).toBe(false)
  })

  it('is closed to a certificate that has expired', async () => {
    expect(await isGreeted(await expired('east.gateway.berth.internal'))).toBe(false)
  })

  it('is closed to a host that was removed, whose connections end', async () => {
    const id = newId('host')
    await insertHost(app.db, { id, name: 'south', address: '10.0.0.3:7075', region: null })
    const identity = await identityOf({ role: 'gateway', host: 'south' })
    const socket = connectWith(identity)
    await once(socket, 'data')
    await setHostState(app.db, { id, from: ['joining'], to: 'removed', at: new Date() })
    domain.clock.advance(2_000)
    await closed(socket)
    expect(await isGreeted(identity)).toBe(false)
  })

  it('is closed to a certificate that is older than the host of this name', async () => {
    const until = new Date(Date.now() + 3_600_000)
    await app.db.updateTable('hosts').set({ member_since: until }).where('id', '=', far.id).execute()
    expect(await isGreeted(identities.gateway)).toBe(false)
    await app.db.updateTable('hosts').set({ member_since: new Date() }).where('id', '=', far.id).execute()
    expect(await isGreeted(identities.gateway)).toBe(true)
  })

  it('keeps no more than the newest connections of a host', async () => {
    const many = { length: MAX_CONNECTIONS_OF_HOST + 1 }
    const sockets = Array.from(many, () => connectWith(identities.gateway))
    await Promise.race(sockets.map(closed))
    expect(sockets.filter(({ destroyed }) => destroyed)).toHaveLength(1)
    for (const socket of sockets) socket.destroy()
  })

  it('says when the gateways of one host connect from two addresses, as with a copy of its data directory', async () => {
    await serving.close()
    const lines: string[] = []
    serving = await serve(0, { ...app, log: pino({ level: 'error' }, lineSink(lines)) })
    const sockets = [connectWith(identities.gateway), connectWith(identities.gateway)]
    await Promise.all(sockets.map(async (socket) => await once(socket, 'data')))
    expect(lines).toEqual([])
    const copy = connectWith(identities.gateway, { localAddress: '127.0.0.2' })
    await once(copy, 'data')
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      {
        host: 'east',
        addresses: [HOST, '127.0.0.2'],
        msg: expect.stringContaining('end Berth on one of them'),
      },
    ])
    for (const socket of [...sockets, copy]) socket.destroy()
  })

  it('is not mistaken by a gateway: another member of the fleet that answers there gets no question', async () => {
    await serving.close()
    const engine = await identityOf({ role: 'engine', host: 'main' })
    const false_ = await serveFarGateways(app, { host: HOST, port: serving.port, identity: engine })
    const gateway = await startFarGateway(false_.port)
    await expect(gateway.server.ask('used', { unitIds: [] })).rejects.toThrow('another member of the fleet')
    await gateway.close()
    await false_.close()
  })

  /** Signed by the fleet's authority, and ended a day ago. */
  async function expired(name: string): Promise<FleetIdentity> {
    const at = (file: string) => join(directory, `expired.${file}`)
    const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=late']
    const within = { timeoutMs: 20_000 }
    await runOrThrow('openssl', ['req', ...made, '-keyout', at('key'), '-out', at('csr')], within)
    await writeFile(at('ext'), `subjectAltName=DNS:${name}\nextendedKeyUsage=clientAuth\n`)
    const [ca, caKey] = ['ca.crt', 'ca.key'].map((file) => join(directory, 'fleet', file)) as [string, string]
    const signing = ['-CA', ca, '-CAkey', caKey, '-days', '-1', '-extfile', at('ext'), '-out', at('crt')]
    await runOrThrow('openssl', ['x509', '-req', '-in', at('csr'), ...signing], within)
    const parts = [at('key'), at('crt'), ca].map(async (file) => await readFile(file, 'utf8'))
    return parseIdentity((await Promise.all(parts)).join(''))
  }
})
