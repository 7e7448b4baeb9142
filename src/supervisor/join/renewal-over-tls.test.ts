// A host renews its certificates over the connection on which the server calls its engine (decisions/joining.md): TLS,
// openssl, files, the supervisor's socket and the database are real, and the machines are in memory.

import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type App, createApp } from '../../app.ts'
import { issueIdentity } from '../../certificates/fleet-ca.ts'
import { openHostRenewal } from '../../certificates/host-renewal.ts'
import type { Unit } from '../../contract/unit.ts'
import { renewCertificates } from '../../domain/hosts/renew.ts'
import { recover } from '../../domain/units/reconcile.ts'
import { watchHosts } from '../../domain/units/watch-hosts.ts'
import { openEpochs } from '../../engine/epochs.ts'
import { createFleet } from '../../engine/fleet.ts'
import { type ServedEngine, serveEngine } from '../../engine/ipc/server.ts'
import { DAY, SECOND } from '../../lib/clock.ts'
import { parseIdentity } from '../../lib/fleet-identity.ts'
import { silentLog } from '../../lib/log.ts'
import { hostIdentitiesIn } from '../../processes/channel.ts'
import { openFarEngines } from '../../processes/far-engines.ts'
import { type FollowedIdentity, followIdentity } from '../../processes/identity.ts'
import { signRenewalsOver } from '../../processes/renewals.ts'
import { listHostEvents } from '../../store/hosts.ts'
import { joinHost } from '../../store/joined-hosts.ts'
import { giveBlock, takeBlockBack } from './blocks.ts'
import { serveRenewals } from './renewals.ts'
import { agedIdentity } from '../../../test/support/aged-identity.ts'
import { createTestDomain, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import { createFakeEngine, type FakeEngine } from '../../../test/support/fake-engine/fake-engine.ts'

const HOST = '127.0.0.1'
const gid = process.getegid?.() ?? 0
const member = { role: 'engine', host: 'east' } as const
const block = { name: 'east', instance: 'east', subnet: '10.81.0.0/16', others: [] }

let domain: TestDomain
let app: App
let fake: FakeEngine
let unit: Unit
let dataDir: string
let files: ReturnType<typeof hostIdentitiesIn>
let identity: FollowedIdentity
let served: ServedEngine
let signing: { close: () => Promise<void> }
const far = 'host_east'

beforeAll(async () => {
  domain = await createTestDomain()
  const { clock } = domain
  dataDir = await mkdtemp(join(tmpdir(), 'berth-host-renewal-'))
  files = hostIdentitiesIn(join(dataDir, 'east'))
  await mkdir(dirname(files.engine), { recursive: true })
  const server = await issueIdentity(dataDir, { role: 'server', host: 'main' }, new Date())
  await age()
  fake = createFakeEngine({ clock, subnet: 81, instance: 'east' })
  const { renew } = openHostRenewal({ files, instance: 'east', clock, log: silentLog })
  identity = await followIdentity(files.engine, { log: silentLog, clock })
  served = await serveEngine({
    engine: { ...fake, renew },
    epochs: await openEpochs(join(dataDir, 'engine.epoch')),
    socketPath: join(dataDir, 'engine.sock'),
    socketGid: gid,
    tls: { host: HOST, port: 0, identity: identity.current() },
    log: silentLog,
  })
  identity.onRenewed((renewed) => served.tls?.show(renewed))
  const socketPath = join(dataDir, 'renewal.sock')
  const { databaseUrl } = domain
  signing = await serveRenewals({ dataDir, socketPath, socketGid: gid, databaseUrl, clock, log: silentLog })
  const own = { current: () => parseIdentity(server), onRenewed: () => {}, stop: async () => {} }
  const fleet = createFleet(domain.app.fleet.local(), openFarEngines({ identity: own, epoch: 1 }))
  app = createApp({ ...domain.app, clock, fleet, signRenewal: signRenewalsOver(socketPath) })
  await giveBlock(dataDir, block)
  const joined = {
    newId: far,
    name: 'east',
    instance: 'east',
    address: `${HOST}:${portOf()}`,
    at: new Date(),
  }
  await joinHost(app.db, joined)
  const since = new Date(Date.now() - 400 * DAY)
  await app.db.updateTable('hosts').set({ member_since: since }).where('id', '=', far).execute()
  await recover(app)
  while (app.fleet.find(far)?.awaySince !== null) {
    await watchHosts(app)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  app.fleet.local().isDraining = true
  for (;;) {
    unit = await makeUnit(app, await domain.makeCaller(), { name: 'far', sleep: 'never' })
    if (unit.host.id === far) break
  }
}, 60_000)
afterAll(async () => {
  app.fleet.remove(far)
  await identity.stop()
  await served.close()
  await signing.close()
  await domain.close()
  await rm(dataDir, { recursive: true })
})

const portOf = () => served.tls?.port ?? 0

async function age(): Promise<void> {
  const times = { from: new Date(Date.now() - 300 * DAY), to: new Date(Date.now() + 65 * DAY) }
  await writeFile(files.gateway, await agedIdentity(dataDir, { role: 'gateway', host: 'east' }, times))
  await writeFile(files.engine, await agedIdentity(dataDir, member, times))
}

const engineFile = async () => parseIdentity(await readFile(files.engine, 'utf8')).certificate.trim()

/** What the engine shows to a new connection. */
async function shown(): Promise<string> {
  const socket = connect({ host: HOST, port: portOf(), rejectUnauthorized: false })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  const certificate = socket.getPeerX509Certificate()?.toString().trim() ?? ''
  socket.destroy()
  return certificate
}

const renewals = async () =>
  (await listHostEvents(app.db, { host: 'east', limit: 100 }))
    .map(({ event, reason }) => [event, reason])
    .filter(([event]) => event === 'renewed' || event === 'not renewed')

describe('a host whose certificates are due', () => {
  it('gets new ones while a unit runs and a stream is open, and new connections see them', async () => {
    const done = new AbortController()
    const lines: string[] = []
    const engine = app.fleet.find(far)?.engine
    const following = (async () => {
      for await (const line of engine?.followLogs(unit.id, null, done.signal) ?? []) lines.push(line.text)
    })()
    fake.print(unit.id, 'before')
    await expect.poll(() => lines).toContain('before')
    const before = await engineFile()
    expect(await shown()).toBe(before)

    await renewCertificates(app)
    const after = await engineFile()
    expect(after).not.toBe(before)
    domain.clock.advance(10 * SECOND)
    await expect.poll(shown).toBe(after)
    expect(await renewals()).toEqual([['renewed', null]])

    fake.print(unit.id, 'after')
    await expect.poll(() => lines).toContain('after')
    done.abort()
    await following
    expect((await engine?.list())?.map(({ id }) => id)).toEqual([unit.id])
  })

  it('asks for no more, and says when they end', async () => {
    const before = await engineFile()
    await renewCertificates(app)
    expect(await engineFile()).toBe(before)
    const endsMs = app.fleet.find(far)?.certificatesEnd?.getTime() ?? 0
    expect(endsMs).toBeGreaterThan(Date.now() + 364 * DAY)
  })

  it('is told why it gets none once it is not on the list of hosts that have joined, and goes on', async () => {
    await takeBlockBack(dataDir, 'east')
    await age()
    const before = await engineFile()
    await renewCertificates(app)
    expect(await engineFile()).toBe(before)
    expect((await renewals()).at(-1)).toEqual([
      'not renewed',
      expect.stringContaining('it was given up or removed'),
    ])
    expect(app.fleet.find(far)?.awaySince).toBeNull()
    await giveBlock(dataDir, block)
  })

  it('gets them later when what signs was not there in between', async () => {
    const before = await engineFile()
    const { signRenewal } = app
    app.signRenewal = signRenewalsOver(join(dataDir, 'nobody.sock'))
    domain.clock.advance(60 * SECOND)
    await renewCertificates(app)
    expect(await engineFile()).toBe(before)
    app.signRenewal = signRenewal
    domain.clock.advance(120 * SECOND)
    await renewCertificates(app)
    expect(await engineFile()).not.toBe(before)
  })
})
