// Certificates of public names from a test authority that validates at this gateway's TLS port.

import type { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  DOMAIN,
  startGateway,
  type TestGateway,
  type TestGatewayOptions,
} from '../../../test/support/gateway.ts'
import { type Pebble, startPebble } from '../../../test/support/pebble.ts'
import { accountKeyIn } from '../../certificates/acme.ts'
import { DAY, HOUR, systemClock } from '../../lib/clock.ts'
import { freePort } from '../../lib/free-port.ts'
import { silentLog } from '../../lib/log.ts'
import type { Route } from '../route.ts'
import { createPeers, type Peers } from '../workers/peers.ts'
import { askFirst, followOnDemandTls } from './ordered-elsewhere.ts'
import { onDemandTlsLimits, openOnDemandTls } from './on-demand.ts'

const NOBODY = `CN=*.${DOMAIN}`

let gateway: TestGateway
let pebble: Pebble
let directory: string
let limits = onDemandTlsLimits
/** Returns the URL of the authority that the gateway uses. */
let authorityAt: () => string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-names-'))
  const tlsPort = await freePort('127.0.0.1')
  pebble = await startPebble({ tlsPort })
  limits = onDemandTlsLimits
  authorityAt = () => pebble.directory
  gateway = await start(tlsPort)
})
afterEach(async () => {
  await gateway.close()
  await pebble.close()
  await rm(directory, { recursive: true })
})

async function start(
  tlsPort: number,
  routes = new Map<string, Route>(),
  peers?: Peers,
): Promise<TestGateway> {
  const accountKey = await accountKeyIn(directory)
  const authority = {
    get directory() {
      return authorityAt()
    },
    email: 'ops@example.com',
    ca: pebble.ca,
    accountKey,
  }
  const names = join(directory, 'names')
  const certificatesBeside: TestGatewayOptions['certificatesBeside'] = async (around) =>
    await openOnDemandTls({
      ...around,
      authority,
      directory: names,
      domain: DOMAIN,
      log: silentLog,
      limits,
      ...(peers && { peers }),
    })
  return await startGateway({}, { tlsPort, routes, certificatesBeside, ...(peers && { peers }) })
}

async function startAgain(): Promise<void> {
  const { tlsPort, routes } = gateway
  await gateway.close()
  gateway = await start(tlsPort, routes)
}

/** Returns the certificate that a client of this name is presented. */
async function shownTo(servername: string, at = gateway): Promise<X509Certificate> {
  const client = connectTls({
    port: at.tlsPort,
    host: '127.0.0.1',
    servername,
    rejectUnauthorized: false,
  })
  await once(client, 'secureConnect')
  const certificate = client.getPeerX509Certificate()
  client.destroy()
  if (certificate === undefined) throw new Error('nothing was shown')
  return certificate
}

const names = async () => (await readdir(join(directory, 'names'))).toSorted()

describe('a public name', () => {
  it('gets its own valid certificate at its first visit', async () => {
    const host = gateway.expose(1)
    const certificate = await shownTo(host)
    expect(certificate.checkHost(host)).toBe(host)
    expect(certificate.subjectAltName).toBe(`DNS:${host}`)
    const trusting = { port: gateway.tlsPort, host: '127.0.0.1', servername: host, ca: await pebble.root() }
    const client = connectTls(trusting)
    await once(client, 'secureConnect')
    expect(client.authorized).toBe(true)
    client.destroy()
  })

  it('gets one certificate for many concurrent and later visits', async () => {
    const host = gateway.expose(1)
    const shown = await Promise.all(Array.from({ length: 20 }, async () => await shownTo(host)))
    expect(new Set(shown.map(({ serialNumber }) => serialNumber)).size).toBe(1)
    await shownTo(host.toUpperCase())
    expect(pebble.issued()).toBe(1)
  })

  it('keeps its certificate when the gateway restarts, in files that only the gateway can read', async () => {
    const host = gateway.expose(1)
    const { serialNumber } = await shownTo(host)
    await startAgain()
    expect((await shownTo(host)).serialNumber).toBe(serialNumber)
    expect(pebble.issued()).toBe(1)
    const [file = ''] = await names()
    expect((await stat(join(directory, 'names', file))).mode & 0o777).toBe(0o400)
    expect((await stat(join(directory, 'account.key'))).mode & 0o777).toBe(0o600)
  })

  it('gets a new certificate before the old one expires, without a restart', async () => {
    const host = gateway.expose(1)
    const { serialNumber } = await shownTo(host)
    await gateway.later(59 * DAY)
    expect(pebble.issued()).toBe(1)
    await gateway.later(2 * DAY)
    await expect.poll(async () => (await shownTo(host)).serialNumber).not.toBe(serialNumber)
    expect(pebble.issued()).toBe(2)
    expect(await names()).toHaveLength(1)
  })

  it('loses its certificate an hour after its route is gone', async () => {
    const host = gateway.expose(1)
    await shownTo(host)
    gateway.routes.clear()
    await gateway.later(HOUR)
    await expect.poll(names).toEqual([])
    expect((await shownTo(host)).subject).toBe(NOBODY)
  })
})

describe('no certificate is requested', () => {
  it.each([
    ['for a private endpoint', { secret: 'a'.repeat(26) }, (host: string) => host],
    [
      'for a private endpoint without its secret',
      { secret: 'a'.repeat(26) },
      (host: string) => host.replace(`-${'a'.repeat(26)}`, ''),
    ],
    [
      'for a public name with a secret behind it',
      {},
      (host: string) => host.replace('.', `-${'a'.repeat(26)}.`),
    ],
    ['for a name nobody has', {}, () => `web-abcdefghij.${DOMAIN}`],
    ['for the domain itself', {}, () => DOMAIN],
    ['for a name two levels below', {}, (host: string) => `www.${host}`],
    ['for a name elsewhere', {}, (host: string) => host.replace(DOMAIN, 'example.com')],
  ])('%s', async (_what, endpoint, nameOf) => {
    const host = gateway.expose(1, endpoint)
    expect((await shownTo(nameOf(host))).subject).toBe(NOBODY)
    // Not even an account request.
    expect(pebble.output()).not.toContain('calling handler')
    expect(await names()).toEqual([])
  })
})

describe('a certificate authority that fails', () => {
  it('is asked again only after a delay that grows with each failure', async () => {
    const host = gateway.expose(1)
    let asked = 0
    authorityAt = () => {
      asked += 1
      return 'https://127.0.0.1:1/dir'
    }
    expect((await shownTo(host)).subject).toBe(NOBODY)
    const once = asked
    expect((await shownTo(host)).subject).toBe(NOBODY)
    expect(asked).toBe(once)
    await gateway.later(6 * 60_000)
    await shownTo(host)
    expect(asked).toBe(2 * once)
    await gateway.later(6 * 60_000)
    await shownTo(host)
    expect(asked).toBe(2 * once)
    authorityAt = () => pebble.directory
    await gateway.later(6 * 60_000)
    expect((await shownTo(host)).checkHost(host)).toBe(host)
  })

  it('to validate the challenge issues no certificate', async () => {
    const host = gateway.expose(1)
    await gateway.close()
    // Another server listens at the port that the authority validates.
    gateway = await start(0)
    gateway.expose(1, { name: host.split('.')[0] ?? '' })
    expect((await shownTo(host)).subject).toBe(NOBODY)
    await expect.poll(() => pebble.output()).toContain('invalid')
    expect(pebble.issued()).toBe(0)
  })
})

describe('the gateway limits', () => {
  it('the number of names with a certificate', async () => {
    const { tlsPort } = gateway
    await gateway.close()
    limits = { ...onDemandTlsLimits, names: 1 }
    gateway = await start(tlsPort)
    const [first, second] = [gateway.expose(1), gateway.expose(1)]
    expect((await shownTo(first)).subject).not.toBe(NOBODY)
    expect((await shownTo(second)).subject).toBe(NOBODY)
  })

  it('the number of orders per hour', async () => {
    const { tlsPort } = gateway
    await gateway.close()
    limits = { ...onDemandTlsLimits, ordersAnHour: 1 }
    gateway = await start(tlsPort)
    const [first, second] = [gateway.expose(1), gateway.expose(1)]
    await shownTo(first)
    expect((await shownTo(second)).subject).toBe(NOBODY)
    await gateway.later(HOUR)
    expect((await shownTo(second)).subject).not.toBe(NOBODY)
  })
})

describe('a stored certificate', () => {
  it('is deleted at start if it is truncated or belongs to another name', async () => {
    const host = gateway.expose(1)
    await shownTo(host)
    await writeFile(join(directory, 'names', 'web-abcdefghij.pem'), '-----BEGIN CERT')
    await writeFile(join(directory, 'names', 'leftover.pem.new'), 'x')
    await startAgain()
    expect(await names()).toEqual([host.replace(`.${DOMAIN}`, '.pem')])
  })
})

describe('a gateway that orders no certificates itself', () => {
  let peers: Peers[]
  /** It listens where the authority checks names. */
  let other: TestGateway

  beforeEach(async () => {
    const { tlsPort, routes } = gateway
    await gateway.close()
    peers = [0, 1].map((number) =>
      createPeers({ number, of: 2, directory, clock: systemClock, log: silentLog }),
    )
    const [first, second] = peers as [Peers, Peers]
    gateway = await start(0, routes, first)
    other = await startGateway(
      {},
      {
        tlsPort,
        routes,
        peers: second,
        certificatesBeside: async (around) =>
          followOnDemandTls({
            ...around,
            order: askFirst(second),
            directory: join(directory, 'names'),
            domain: DOMAIN,
            peers: second,
          }),
      },
    )
    for (const each of peers) await each.open()
    for (const [index, each] of peers.entries())
      await expect
        .poll(() =>
          each.ask(1 - index, 'metrics', {}).then(
            () => true,
            (error: Error) => !error.message.includes('not there'),
          ),
        )
        .toBe(true)
  })
  afterEach(async () => {
    await other.close()
    for (const each of peers) await each.stop()
  })

  it('has the first one order it at a visit, answers the authority, and shows it', async () => {
    const host = gateway.expose(1)
    const shown = await Promise.all([1, 2, 3].map(async () => await shownTo(host, other)))
    expect(shown[0]?.checkHost(host)).toBe(host)
    expect(new Set(shown.map(({ serialNumber }) => serialNumber)).size).toBe(1)
    expect((await shownTo(host)).serialNumber).toBe(shown[0]?.serialNumber)
    expect(pebble.issued()).toBe(1)
  })

  it('shows what is there while the first one is away, and the default certificate for other names', async () => {
    const host = gateway.expose(1)
    const { serialNumber } = await shownTo(host)
    const another = gateway.expose(1)
    await peers[0]?.stop()
    expect((await shownTo(host, other)).serialNumber).toBe(serialNumber)
    expect((await shownTo(another, other)).subject).toBe(NOBODY)
  })

  it('orders nothing for private and unknown names', async () => {
    const host = gateway.expose(1, { secret: 'abcdefghijklmnopqrstuvwxyz' })
    for (const name of [host, `nothing-abcdefghij.${DOMAIN}`])
      expect((await shownTo(name, other)).subject).toBe(NOBODY)
    expect(pebble.issued()).toBe(0)
  })
})
