// The engine over TLS: the contract once more, and who is refused. Certificates, sockets and TLS are real.

import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectByTls } from 'node:tls'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { issueCertificate } from '../../src/certificates/authority.ts'
import { issueIdentity } from '../../src/certificates/fleet-ca.ts'
import { loadConfig } from '../../src/config.ts'
import { emptyEngine } from '../../src/engine/empty-engine.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { openEpochs } from '../../src/engine/epochs.ts'
import { createFleet } from '../../src/engine/fleet.ts'
import { askEngineEpoch, connectEngine, connectFarEngine } from '../../src/engine/ipc/client.ts'
import { serveEngine } from '../../src/engine/ipc/server.ts'
import { systemClock } from '../../src/lib/clock.ts'
import {
  fleetNameOf,
  type FleetIdentity,
  type FleetMember,
  parseIdentity,
} from '../../src/lib/fleet-identity.ts'
import { parseAddress } from '../../src/lib/setting-values.ts'
import { silentLog } from '../../src/lib/log.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { runHostsCommand } from '../../src/operator/hosts.ts'
import { createFakeEngine, type FakeEngine } from '../support/fake-engine/fake-engine.ts'
import { isDeep } from '../support/part-of.ts'
import { claimGroups, type ContractOptions, describeEngineContract } from './contract.ts'
import { fakeOptions, pullConfigured } from './fake-options.ts'
import { spreadEngine } from './spread-engine.ts'
import { kindOf } from './suite.ts'

const HOST = '127.0.0.1'
const within = { timeoutMs: 20_000 }
const SERVER = { role: 'server', host: 'lead' } as const

let directory = ''
let stranger = ''
let own: { server: FleetIdentity; engine: FleetIdentity }
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-engine-tls-'))
  stranger = await mkdtemp(join(tmpdir(), 'berth-other-fleet-'))
  own = { server: await identityOf(SERVER), engine: await identityOf({ role: 'engine', host: 'east' }) }
})
afterAll(async () => {
  await rm(directory, { recursive: true })
  await rm(stranger, { recursive: true })
})

const identityOf = async (member: FleetMember, dataDir = directory) =>
  parseIdentity(await issueIdentity(dataDir, member, new Date()))

/** Signed by the fleet's authority, and ended a day ago. */
async function expiredIdentity(name: string, usage: 'clientAuth' | 'serverAuth'): Promise<FleetIdentity> {
  const at = (file: string) => join(directory, `expired.${file}`)
  const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=late']
  await runOrThrow('openssl', ['req', ...made, '-keyout', at('key'), '-out', at('csr')], within)
  await writeFile(at('ext'), `subjectAltName=DNS:${name}\nextendedKeyUsage=${usage}\n`)
  const [ca, caKey] = ['ca.crt', 'ca.key'].map((file) => join(directory, 'fleet', file)) as [string, string]
  const signing = ['-CA', ca, '-CAkey', caKey, '-days', '-1', '-extfile', at('ext'), '-out', at('crt')]
  await runOrThrow('openssl', ['x509', '-req', '-in', at('csr'), ...signing], within)
  const parts = [at('key'), at('crt'), ca].map(async (file) => await readFile(file, 'utf8'))
  return parseIdentity((await Promise.all(parts)).join(''))
}

type Served = {
  fake: FakeEngine
  port: number
  show: (identity: FleetIdentity) => void
  close: () => Promise<void>
}

let sockets = 0
async function serve(identity = own.engine): Promise<Served> {
  const fake = createFakeEngine({ clock: systemClock })
  const socketPath = join(directory, `engine-${(sockets += 1)}.sock`)
  const served = await serveEngine({
    engine: fake,
    epochs: await openEpochs(`${socketPath}.epoch`),
    socketPath,
    socketGid: process.getegid?.() ?? 0,
    tls: { host: HOST, port: 0, identity },
    log: silentLog,
  })
  if (!served.tls) throw new Error('it does not listen by TLS')
  const { port, show } = served.tls
  return { fake, port, show, close: served.close }
}

async function serveForTest(identity?: FleetIdentity): Promise<Served> {
  const served = await serve(identity)
  onTestFinished(served.close)
  return served
}

type Calling = {
  identity?: FleetIdentity | (() => FleetIdentity)
  name?: string
  memberSince?: Date
  epoch?: number
  onLost?: () => void
}

function callerOf(
  port: number,
  { identity = own.server, name = 'east', epoch = 1, ...given }: Calling = {},
): Engine {
  const { onLost = () => {}, ...more } = given
  return connectEngine({ address: { host: HOST, port, name, identity, ...more }, epoch, onLost })
}

/** Each group of claims is tried over one of the two ways here, and over both in the deep tier. */
const elsewhere = (way: 0 | 1): ContractOptions['without'] =>
  isDeep
    ? {}
    : Object.fromEntries(
        claimGroups
          .filter((_, index) => index % 2 !== way)
          .map((group) => [group, 'tried over the other way']),
      )

describeEngineContract(
  'the engine in memory, over TLS',
  async () => {
    const { fake, port, close } = await serve()
    return { engine: callerOf(port), close, configuredImage: await pullConfigured(fake) }
  },
  { ...fakeOptions, without: { ...elsewhere(0), ...fakeOptions.without } },
)

describeEngineContract(
  'three engines in memory over TLS, through the fleet of a server,',
  async () => {
    const names = ['north', 'east', 'west']
    const served = await Promise.all(
      names.map(async (host) => await serve(await identityOf({ role: 'engine', host }))),
    )
    const local = { id: 'host_local', name: 'local', region: null, engine: emptyEngine }
    const fleet = createFleet(local, ({ name, address }) => {
      const to = { ...parseAddress(address), name, identity: own.server }
      return connectFarEngine({ address: to, epoch: 1, onLost: () => {} })
    })
    const hosts = served.map(({ port }, index) => {
      const name = names[index] ?? ''
      return fleet.open({ id: name, name, region: null, address: `${HOST}:${port}` }, new Date())
    })
    for (const host of hosts) fleet.setAway(host, null)
    const [configured = ''] = await Promise.all(served.map(async ({ fake }) => await pullConfigured(fake)))
    return {
      engine: spreadEngine(fleet, hosts).engine,
      close: async () => void (await Promise.all(served.map(async ({ close }) => await close()))),
      configuredImage: configured,
    }
  },
  { ...fakeOptions, without: { ...elsewhere(1), ...fakeOptions.without } },
)

describe('the TLS listener', () => {
  const ref = { id: 'unit_1', generation: 1 }
  /** A call by HTTP, a low-latency call, and a stream. */
  const calls: Record<string, (engine: Engine) => Promise<unknown>> = {
    list: async (engine) => await engine.list(),
    thaw: async (engine) => await engine.thaw(ref),
    exec: async (engine) =>
      await engine.exec(ref, { argv: ['true'], stdin: null, timeoutMs: 1000 }, () => {}),
  }

  test('is called with the identity that the server has at the time, once it has another one', async () => {
    const served = await serveForTest()
    let identity = await expiredIdentity(fleetNameOf(SERVER), 'clientAuth')
    const engine = callerOf(served.port, { identity: () => identity })
    for (const call of [calls['list'], calls['thaw']])
      expect(await kindOf(call?.(engine) ?? Promise.resolve())).toBe('engine_away')
    identity = own.server
    expect(await engine.list()).toEqual([])
  })

  /** A low-latency call is tried for as long as an engine may take to restart, so those who are refused wait beside each other. */
  async function expectRefused(calling: Calling): Promise<void> {
    const served = await serve()
    try {
      const engine = callerOf(served.port, calling)
      for (const [name, call] of Object.entries(calls))
        expect(await kindOf(call(engine)), name).toBe('engine_away')
      expect(served.fake.calls).toEqual([])
      // It still answers who may call.
      expect(await callerOf(served.port).list()).toEqual([])
    } finally {
      await served.close()
    }
  }

  test.concurrent.each([
    ['a gateway', { role: 'gateway', host: 'east' }],
    ['another engine', { role: 'engine', host: 'west' }],
    ['this engine itself', { role: 'engine', host: 'east' }],
  ] as const)('refuses %s, whatever it asks', async (_who, member) => {
    await expectRefused({ identity: await identityOf(member) })
  })

  test.concurrent('refuses the server of another fleet, also if it believes in this fleet’s authority', async () => {
    const other = await identityOf(SERVER, stranger)
    const believing = { ...other, authority: own.server.authority }
    await Promise.all([expectRefused({ identity: other }), expectRefused({ identity: believing })])
  })

  test.concurrent('refuses a server whose certificate has expired', async () => {
    await expectRefused({
      identity: await expiredIdentity('lead.server.berth.internal', 'clientAuth'),
    })
  })

  test.concurrent('refuses a certificate of the authority whose name is of no role', async () => {
    const authority = { directory: join(directory, 'fleet'), name: 'Berth fleet', domain: 'berth.internal' }
    const named = { names: ['lead.owner.berth.internal'], usage: 'clientAuth' } as const
    const pem = await issueCertificate(
      { ...authority, certificateDays: 1 },
      { ...named, names: [...named.names] },
    )
    const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/.exec(pem)?.[0] ?? ''
    const key = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----/.exec(pem)?.[0] ?? ''
    await expectRefused({
      identity: { key, certificate, authority: own.server.authority },
    })
  })

  test('refuses who has no certificate, and who speaks an older TLS', async () => {
    const { fake, port } = await serveForTest()
    const servername = 'east.engine.berth.internal'
    const bare = connectByTls({ host: HOST, port, ca: own.server.authority, servername })
    bare.on('error', () => {})
    bare.write('POST /list HTTP/1.1\r\nhost: a\r\nberth-epoch: 1\r\ncontent-length: 2\r\n\r\n{}')
    const said: Buffer[] = []
    bare.on('data', (data: Buffer) => void said.push(data))
    await new Promise((resolve) => bare.once('close', resolve))
    expect(Buffer.concat(said).toString()).toBe('')
    const { key, certificate: cert, authority: ca } = own.server
    const old = connectByTls({ host: HOST, port, key, cert, ca, servername, maxVersion: 'TLSv1.2' })
    const [error] = (await once(old, 'error')) as [Error]
    expect(error.message).toContain('protocol version')
    expect(fake.calls).toEqual([])
  })

  test('hangs up on who does not speak TLS', async () => {
    const { port } = await serveForTest()
    const socket: Socket = connect(port, HOST)
    socket.on('error', () => {})
    socket.write('POST /list HTTP/1.1\r\n\r\n')
    socket.resume()
    await new Promise((resolve) => socket.once('close', resolve))
    expect(await callerOf(port).list()).toEqual([])
  })

  test('hangs up on who says nothing', { timeout: 20_000 }, async () => {
    const { port } = await serveForTest()
    const silent = connect(port, HOST)
    silent.on('error', () => {})
    silent.resume()
    await new Promise((resolve) => silent.once('close', resolve))
    expect(await callerOf(port).list()).toEqual([])
  })

  test('a server calls no engine of another host, of another fleet, or with an expired certificate', async () => {
    const { port, fake } = await serveForTest()
    expect(await kindOf(callerOf(port, { name: 'west' }).list())).toBe('engine_away')
    const away = await serveForTest(await identityOf({ role: 'engine', host: 'east' }, stranger))
    expect(await kindOf(callerOf(away.port).list())).toBe('engine_away')
    const late = await serveForTest(await expiredIdentity('east.engine.berth.internal', 'serverAuth'))
    expect(await kindOf(callerOf(late.port).thaw(ref))).toBe('engine_away')
    // A server that another one plays, with a certificate that is no engine's.
    const fraud = await serveForTest(await identityOf({ role: 'server', host: 'east' }))
    expect(await kindOf(callerOf(fraud.port).list())).toBe('engine_away')
    expect([fake, away.fake, late.fake, fraud.fake].flatMap(({ calls: seen }) => seen)).toEqual([])
  })

  test('a server calls no engine whose certificate is that of an earlier host of this name', async () => {
    const { port, fake } = await serveForTest(await identityOf({ role: 'engine', host: 'east' }))
    const laterBy = (ms: number) => callerOf(port, { memberSince: new Date(Date.now() + ms) })
    expect(await kindOf(laterBy(3_600_000).list())).toBe('engine_away')
    expect(await kindOf(laterBy(3_600_000).thaw(ref))).toBe('engine_away')
    const command = { argv: ['cat'], timeoutMs: 20_000, size: null }
    const { signal } = new AbortController()
    const typing = laterBy(3_600_000).terminal(ref, command, (async function* () {})(), () => {}, signal)
    expect(await kindOf(typing)).toBe('engine_away')
    expect(fake.calls).toEqual([])
    // It is signed just before the host is entered.
    expect(await laterBy(30_000).list()).toEqual([])
  })

  test('calls one after another share a connection', async () => {
    const { port } = await serveForTest(await identityOf({ role: 'engine', host: 'east' }))
    let connections = 0
    const wire = createServer((near) => {
      connections += 1
      const far = connect(port, HOST)
      near.pipe(far).pipe(near)
      near.on('error', () => far.destroy())
      far.on('error', () => near.destroy())
    })
    onTestFinished(() => void wire.close())
    await once(wire.listen(0, HOST), 'listening')
    const caller = callerOf((wire.address() as AddressInfo).port, { memberSince: new Date() })
    for (let call = 0; call < 5; call += 1) await caller.list()
    expect(connections).toBe(1)
  })

  test('shows a renewed certificate to the next caller, and those that are connected stay so', async () => {
    const { fake, port, show } = await serveForTest()
    const { digest } = await callerOf(port).pull('docker.io/library/debian:12')
    const size = { cpus: 1, memoryMb: 64, pids: 8, diskGb: 1 }
    const machine = {
      ...ref,
      imageDigest: digest,
      isolation: 'runc',
      size,
      volume: null,
      networkGroup: 1,
    } as const
    await fake.create({ ...machine, id: ref.id })
    const connected = callerOf(port)
    await connected.processes(ref.id)
    show(await identityOf({ role: 'engine', host: 'west' }))
    expect(await connected.list()).toHaveLength(1)
    expect(await callerOf(port, { name: 'west' }).list()).toHaveLength(1)
    expect(await kindOf(callerOf(port, { name: 'east' }).list())).toBe('engine_away')
    // The authority goes with it: those that another one has signed are refused from then on.
    show(await identityOf({ role: 'engine', host: 'west' }, stranger))
    expect(await kindOf(callerOf(port, { name: 'west' }).list())).toBe('engine_away')
  })

  test('refuses a server that another one has taken over from', async () => {
    const { port } = await serveForTest()
    let lost = 0
    const earlier = callerOf(port, { epoch: 3, onLost: () => void (lost += 1) })
    expect(await earlier.list()).toEqual([])
    expect(await callerOf(port, { epoch: 4 }).list()).toEqual([])
    for (const [name, call] of Object.entries(calls))
      expect(await kindOf(call(earlier)), name).toBe('stale_caller')
    expect(lost).toBeGreaterThanOrEqual(2)
    const { server: identity } = own
    expect(await askEngineEpoch({ host: HOST, port, name: 'east', identity })).toBe(4)
  })
})

describe('"npm run hosts"', () => {
  const run = async (...args: string[]) =>
    await runHostsCommand(loadConfig({ BERTH_DATA_DIR: directory }), args)

  test('makes a certificate with which an engine listens, for root alone, and never over a file', async () => {
    const file = join(directory, 'east.pem')
    expect(await run('certificate', 'east', file)).toBe(0)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const { port } = await serveForTest(parseIdentity(await readFile(file, 'utf8')))
    expect(await run('check', 'east', `${HOST}:${port}`)).toBe(0)
    await expect(run('certificate', 'east', file)).rejects.toThrow('is there already')
    await expect(run('certificate', 'east', join(file, 'below'))).rejects.toThrow('cannot be written')
  })

  test('says why an engine does not answer', async () => {
    const { port, close } = await serveForTest()
    await expect(run('check', 'west', `${HOST}:${port}`)).rejects.toThrow('another machine answers')
    const away = await serveForTest(await identityOf({ role: 'engine', host: 'east' }, stranger))
    await expect(run('check', 'east', `${HOST}:${away.port}`)).rejects.toThrow('of another Berth')
    const late = await serveForTest(await expiredIdentity('east.engine.berth.internal', 'serverAuth'))
    await expect(run('check', 'east', `${HOST}:${late.port}`)).rejects.toThrow('has expired')
    await close()
    await expect(run('check', 'east', `${HOST}:${port}`)).rejects.toThrow('nothing listens there')
  })

  test.each([
    ['a verb nobody knows', ['add']],
    ['a name with a dot', ['certificate', 'east.example', 'a.pem']],
    ['a name that is too long', ['check', 'a'.repeat(33), '127.0.0.1:1']],
    ['no file', ['certificate', 'east']],
    ['an address without a port', ['check', 'east', '127.0.0.1']],
    ['one word too many', ['check', 'east', '127.0.0.1:1', 'now']],
  ])('refuses %s with a sentence', async (_what, args) => {
    await expect(run(...args)).rejects.toThrow(/--help|must be host:port/)
  })

  test('a file that is no identity is refused where it is read', async () => {
    const wrong = [own.server.key, own.server.key + own.engine.certificate + own.server.authority, '']
    for (const pem of wrong) expect(() => parseIdentity(pem)).toThrow('It must hold a key')
    const file = join(directory, 'other-ca.pem')
    await writeFile(
      file,
      own.server.key + own.server.certificate + (await identityOf(SERVER, stranger)).authority,
    )
    expect(() => parseIdentity('x')).toThrow('It must hold a key')
    expect(await readFile(file, 'utf8').then((pem) => failureOf(() => parseIdentity(pem)))).toContain(
      'It must hold',
    )
  })

  test('one of the two settings without the other is refused', () => {
    expect(() => loadConfig({ BERTH_ENGINE_TLS: '127.0.0.1:7075' })).toThrow('set together')
    expect(() => loadConfig({ BERTH_ENGINE_CERTIFICATE: '/etc/berth.pem' })).toThrow('set together')
    expect(loadConfig({}).engineTls).toBeNull()
  })
})

function failureOf(work: () => unknown): string {
  try {
    work()
    return ''
  } catch (error) {
    return String(error)
  }
}
