// The gateway process of a host without a database (decisions/joining.md): the process as it is, with its server over TLS,
// visitors over TLS with its own domain, and a unit's question to its resolver.

import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decode, encode } from 'dns-packet'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { issueIdentity } from '../../src/certificates/fleet-ca.ts'
import { loadConfig } from '../../src/config.ts'
import { exposeUnit } from '../../src/domain/units/expose.ts'
import { getUnit } from '../../src/domain/units/get.ts'
import { sleepUnit } from '../../src/domain/units/sleep.ts'
import { type FarGateways, serveFarGateways } from '../../src/gateway/server-link/far-server.ts'
import { parseIdentity } from '../../src/lib/fleet-identity.ts'
import { freePort } from '../../src/lib/free-port.ts'
import { silentLog } from '../../src/lib/log.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { certificateFileIn, identityFileIn, RESOLVER_PORT } from '../../src/processes/channel.ts'
import { gatewayProcess } from '../../src/processes/gateway.ts'
import type { StartedProcess } from '../../src/processes/run-process.ts'
import { certificate, DOMAIN, type Origin, startOrigin } from '../support/gateway.ts'
import { createTwoHosts, type OwnedUnit, type TwoHosts } from '../support/two-hosts.ts'

const HOST = '127.0.0.1'
/** The resolver's address, which the engine gives the host; here it is on loopback for the time of the test. */
const instance = { id: 'tfgw', subnet: '10.253.0.0/16' }
const RESOLVER = '10.253.0.1'
const onLoopback = async (verb: 'replace' | 'del') =>
  await runOrThrow('ip', ['address', verb, `${RESOLVER}/32`, 'dev', 'lo'], { timeoutMs: 5000 })

let hosts: TwoHosts
let own: OwnedUnit
let directory: string
let origin: Origin
let serving: FarGateways
let gateway: StartedProcess
let tlsPort: number
let url: string

beforeAll(async () => {
  hosts = await createTwoHosts()
  directory = await mkdtemp(join(tmpdir(), 'berth-far-gateway-'))
  origin = await startOrigin((_request, response) => response.end('from the unit'))
  const identity = parseIdentity(await issueIdentity(directory, { role: 'server', host: 'main' }, new Date()))
  serving = await serveFarGateways(hosts.app, { host: HOST, port: 0, identity })
  const member = { role: 'gateway', host: 'east' } as const
  await writeFile(identityFileIn(directory), await issueIdentity(directory, member, new Date()))
  await writeFile(certificateFileIn(directory), certificate())
  await onLoopback('replace')
  tlsPort = await freePort(HOST)
  const settings = loadConfig({
    BERTH_GATEWAY_HTTP: `${HOST}:${await freePort(HOST)}`,
    BERTH_GATEWAY_TLS: `${HOST}:${tlsPort}`,
    BERTH_GATEWAY_MYSQL: `${HOST}:${await freePort(HOST)}`,
    BERTH_GATEWAY_METRICS: `${HOST}:${await freePort(HOST)}`,
    BERTH_DOMAIN: DOMAIN,
  })
  const serverLink = { host: HOST, port: serving.port, identityFile: identityFileIn(directory) }
  gateway = await gatewayProcess({
    config: { ...settings, serverLink },
    instance,
    runDir: directory,
    stateDir: directory,
    databaseUrl: '',
    needsKey: false,
    machines: [],
    worker: null,
    warmUp: false,
    log: silentLog,
    progress: () => {},
    needs: () => {},
    leads: () => {},
    end: (why) => {
      throw new Error(why)
    },
  })
  own = await hosts.makeUnitOn(hosts.far)
  const { db } = hosts.app
  await db.updateTable('units').set({ address: HOST }).where('id', '=', own.unit.id).execute()
  const published = { port: origin.port, mode: 'public', rotate: false } as const
  url = (await exposeUnit(hosts.app, own.caller, own.unit.id, published)).url
}, 120_000)
afterAll(async () => {
  await gateway?.stop()
  await serving?.close()
  await onLoopback('del')
  await origin.close()
  await rm(directory, { recursive: true })
  await hosts.domain.close()
})

async function visit(): Promise<string> {
  const { host, hostname } = new URL(url)
  const asked = request({
    host: HOST,
    port: tlsPort,
    servername: hostname,
    headers: { host },
    ca: certificate(),
  })
  asked.end()
  const [response] = await once(asked, 'response')
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return `${response.statusCode} ${text}`
}

describe('the gateway process of a host without a database', () => {
  it('wakes a unit of its host for a visitor by TLS, whose URL has its domain and port', async () => {
    expect(new URL(url).port).toBe(String(tlsPort))
    await sleepUnit(hosts.app, own.caller, own.unit.id, { sleep: '30m', stack: false, now: true })
    expect(await visit()).toBe('200 from the unit')
    expect((await getUnit(hosts.app, own.caller, own.unit.id)).state).toBe('running')
  })

  it('resolves the names of its units for them', async () => {
    const socket = createSocket('udp4')
    const questions = [{ type: 'A' as const, name: own.unit.internalHost }]
    socket.bind(0, HOST)
    await once(socket, 'listening')
    socket.send(encode({ type: 'query', id: 7, flags: 256, questions }), RESOLVER_PORT, RESOLVER)
    const [answer] = (await once(socket, 'message')) as [Buffer]
    socket.close()
    expect(decode(answer).answers).toMatchObject([{ name: own.unit.internalHost, data: HOST }])
  })

  it('serves units that run while the server is away, and wakes again once it is back', async () => {
    const { port } = serving
    // What the gateway knows of the route is from before the wake. It is read again a quarter of a second later.
    await delay(300)
    expect(await visit()).toBe('200 from the unit')
    await serving.close()
    expect(await visit()).toBe('200 from the unit')
    const identity = parseIdentity(
      await issueIdentity(directory, { role: 'server', host: 'other' }, new Date()),
    )
    serving = await serveFarGateways(hosts.app, { host: HOST, port, identity })
    await sleepUnit(hosts.app, own.caller, own.unit.id, { sleep: '30m', stack: false, now: true })
    expect(await visit()).toBe('200 from the unit')
  })
})
