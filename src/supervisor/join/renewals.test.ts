// A host renews its certificates (decisions/joining.md): openssl, the files, the supervisor's socket and the database are
// real. What carries a request, here the test, tries to make more of it.

import { createPrivateKey, sign, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Kysely } from 'kysely'
import pino from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { agedIdentity } from '../../../test/support/aged-identity.ts'
import { createTestClock, type TestClock } from '../../../test/support/clock.ts'
import { lineSink } from '../../../test/support/logged.ts'
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts'
import { issueIdentity } from '../../certificates/fleet-ca.ts'
import { type HostRenewal, openHostRenewal } from '../../certificates/host-renewal.ts'
import { DAY, HOUR, MINUTE } from '../../lib/clock.ts'
import { type FleetRole, memberOf, parseIdentity } from '../../lib/fleet-identity.ts'
import { RENEWAL_MAX_BYTES } from '../../lib/ipc/renewal-protocol.ts'
import { silentLog } from '../../lib/log.ts'
import { hostIdentitiesIn } from '../../processes/channel.ts'
import { signRenewalsOver } from '../../processes/renewals.ts'
import { type Database, openDatabase } from '../../store/db.ts'
import { setHostState } from '../../store/hosts.ts'
import { joinHost } from '../../store/joined-hosts.ts'
import { giveBlock, takeBlockBack } from './blocks.ts'
import { serveRenewals } from './renewals.ts'

let dataDir = ''
let database: TestDatabase
let db: Kysely<Database>
let serving: { close: () => Promise<void> }
let socketPath = ''
const clock: TestClock = createTestClock()

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'berth-renewals-'))
  socketPath = join(dataDir, 'renewal.sock')
  await issueIdentity(dataDir, { role: 'server', host: 'main' }, new Date())
  database = await createTestDatabase()
  db = openDatabase(database.url, silentLog)
  const socketGid = process.getegid?.() ?? 0
  serving = await serveRenewals({
    dataDir,
    socketPath,
    socketGid,
    databaseUrl: database.url,
    clock,
    log: silentLog,
  })
})
afterAll(async () => {
  await serving.close()
  await db.destroy()
  await database.drop()
  await rm(dataDir, { recursive: true })
})

type Host = {
  name: string
  instance: string
  id: string
  files: ReturnType<typeof hostIdentitiesIn>
  renewal: HostRenewal
  lines: string[]
}

let hosts = 0
let host: Host
beforeEach(async () => {
  host = await joinedHost()
})

const AGED = { from: -300 * DAY, to: 65 * DAY }

/** Its certificates were signed 300 days ago, if nothing else is said. */
async function joinedHost(times: { from: number; to: number } = AGED): Promise<Host> {
  hosts += 1
  const name = `host-${hosts}`
  const instance = `h${String(hosts).padStart(3, '0')}`
  const id = `host_${name}`
  const files = hostIdentitiesIn(join(dataDir, name))
  await mkdir(dirname(files.engine), { recursive: true })
  await giveBlock(dataDir, { name, instance, subnet: `10.${hosts}.0.0/16`, others: [] })
  await joinHost(db, { newId: id, name, instance, address: `10.0.0.${hosts}:7075`, at: new Date() })
  await db
    .updateTable('hosts')
    .set({ member_since: past(-400 * DAY), state: 'ready' })
    .where('id', '=', id)
    .execute()
  const made: Host = { name, instance, id, files, lines: [], renewal: renewalOf(files, instance, []) }
  made.renewal = renewalOf(files, instance, made.lines)
  await age(made, times)
  return made
}

const renewalOf = (files: Host['files'], instance: string, lines: string[]) =>
  openHostRenewal({ files, instance, clock, log: pino({ level: 'info' }, lineSink(lines)) })

const past = (ms: number) => new Date(clock.now().getTime() + ms)

async function age({ name, files }: Host, { from, to }: { from: number; to: number }): Promise<void> {
  const times = { from: past(from), to: past(to) }
  await writeFile(files.engine, await agedIdentity(dataDir, { role: 'engine', host: name }, times))
  await writeFile(files.gateway, await agedIdentity(dataDir, { role: 'gateway', host: name }, times))
}

const carry = (asked: { host: string; request: string }) => signRenewalsOver(socketPath)(asked)
const identitiesOf = async ({ files }: Host) => ({
  engine: parseIdentity(await readFile(files.engine, 'utf8')),
  gateway: parseIdentity(await readFile(files.gateway, 'utf8')),
})
async function requestOf({ renewal }: Host): Promise<string> {
  const request = (await renewal.renew(null))?.request
  if (!request) throw new Error('it asks for nothing')
  return request
}
/** With other contents, and signed by the engine of that host. */
async function forged(by: Host, request: string, changes: Record<string, unknown>): Promise<string> {
  const { engine } = await identitiesOf(by)
  const message = { ...(JSON.parse(request) as Record<string, unknown>), ...changes }
  const { at, instance, requests } = message as {
    at: number
    instance: string
    requests: { engine: string; gateway: string }
  }
  const part = ['berth-renewal', at, instance, requests.engine, requests.gateway].join('\n')
  const signature = sign('sha256', Buffer.from(part), createPrivateKey(engine.key)).toString('base64')
  return JSON.stringify({ ...message, certificate: engine.certificate, signature })
}

describe('a host whose certificates have lived for two thirds of their time', () => {
  it('gets new ones for new keys, whole and of its roles, and asks for no more', async () => {
    const before = await identitiesOf(host)
    const asked = await host.renewal.renew(null)
    expect(asked?.endsAt.getTime()).toBeLessThan(past(66 * DAY).getTime())
    const outcome = await carry({ host: host.name, request: asked?.request ?? '' })
    const told = await host.renewal.renew(outcome)
    const after = await identitiesOf(host)
    for (const role of ['engine', 'gateway'] as const) {
      const certificate = new X509Certificate(after[role].certificate)
      expect(memberOf(certificate)).toEqual({ role, host: host.name })
      expect(after[role].key).not.toBe(before[role].key)
    }
    expect(new X509Certificate(after.engine.certificate).keyUsage).toEqual(['1.3.6.1.5.5.7.3.1'])
    expect(new X509Certificate(after.gateway.certificate).keyUsage).toEqual([
      '1.3.6.1.5.5.7.3.1',
      '1.3.6.1.5.5.7.3.2',
    ])
    expect(told?.endsAt.getTime()).toBeGreaterThan(past(360 * DAY).getTime())
    expect(told?.request).toBeNull()
    expect((await host.renewal.renew(null))?.request).toBeNull()
    expect(await readdir(dirname(host.files.engine))).toEqual(['engine.pem', 'gateway.pem'])
  })

  it('asks at once when it starts, again after a minute, and ever more rarely while nothing comes of it', async () => {
    const asks = async () => (await host.renewal.renew(null))?.request !== null
    expect(await asks()).toBe(true)
    expect(await asks()).toBe(false)
    const waits: number[] = []
    for (let minutes = 0; waits.length < 8; ) {
      clock.advance(MINUTE)
      minutes += 1
      if (!(await asks())) continue
      waits.push(minutes)
      minutes = 0
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60])
    const restarted = renewalOf(host.files, host.instance, [])
    expect((await restarted.renew(null))?.request).toEqual(expect.any(String))
  })

  it('keeps what it has when it is refused, when it asked for nothing, and when what comes is of another', async () => {
    const before = await identitiesOf(host)
    await requestOf(host)
    await host.renewal.renew({ refused: 'it was removed' })
    expect(host.lines.join()).toContain('it was removed')
    const other = await joinedHost()
    const outcome = await carry({ host: other.name, request: await requestOf(other) })
    await host.renewal.renew(outcome)
    expect(await identitiesOf(host)).toEqual(before)
    clock.advance(HOUR)
    await requestOf(host)
    await expect(host.renewal.renew(outcome)).rejects.toThrow('It must hold a key')
    clock.advance(HOUR)
    await requestOf(host)
    await expect(host.renewal.renew({ engine: 'x', gateway: '' })).rejects.toThrow('It must hold a key')
    expect(await identitiesOf(host)).toEqual(before)
  })

  it('asks again for both if it ended between its two files', async () => {
    const { engine } = await identitiesOf(host)
    const outcome = await carry({ host: host.name, request: await requestOf(host) })
    // A directory in the way of the second file: the first one is there, and the call fails as at a death.
    await mkdir(`${host.files.engine}.new`)
    await expect(host.renewal.renew(outcome)).rejects.toThrow('EISDIR')
    await rm(`${host.files.engine}.new`, { recursive: true })
    expect((await identitiesOf(host)).engine).toEqual(engine)
    const restarted = { ...host, renewal: renewalOf(host.files, host.instance, []) }
    await restarted.renewal.renew(await carry({ host: host.name, request: await requestOf(restarted) }))
    expect((await identitiesOf(host)).engine).not.toEqual(engine)
  })
})

describe('the hosts', () => {
  it('do not all ask at the same moment, and none before two thirds of the time', async () => {
    const isAsking = async (from: number) => {
      const each = await joinedHost({ from, to: from + 360 * DAY })
      return (await each.renewal.renew(null))?.request !== null
    }
    const all = async (from: number) => [await isAsking(from), await isAsking(from), await isAsking(from)]
    expect(await all(-239 * DAY)).toEqual([false, false, false])
    expect(await all(-253 * DAY)).toEqual([true, true, true])
  })

  it('say when nothing was renewed for a month, and what to do once their certificates have ended', async () => {
    await host.renewal.tell()
    expect(host.lines.join()).toContain('the server has not renewed the certificates of this host')
    await age(host, { from: -365 * DAY, to: -HOUR })
    await host.renewal.tell()
    expect(host.lines.join()).toContain(
      'have ended, so no server can call it: run \\"npm run hosts -- join-token\\"',
    )
    expect((await host.renewal.renew(null))?.request).toBeNull()
  })
})

describe('the supervisor', () => {
  const refusalOf = async (asked: { host: string; request: string }) => {
    const outcome = await carry(asked)
    return 'refused' in outcome ? outcome.refused : 'signed'
  }

  it('refuses the request of a host that was given up', async () => {
    await setHostState(db, { id: host.id, from: ['ready'], to: 'lost', at: new Date() })
    expect(await refusalOf({ host: host.name, request: await requestOf(host) })).toContain(
      'given up or removed',
    )
  })

  it('refuses the request of a host that was removed, in the database or in the list that root alone writes', async () => {
    const request = await requestOf(host)
    await takeBlockBack(dataDir, host.name)
    expect(await refusalOf({ host: host.name, request })).toContain('given up or removed')
    const other = await joinedHost()
    await setHostState(db, { id: other.id, from: ['ready'], to: 'removed', at: new Date() })
    expect(await refusalOf({ host: other.name, request: await requestOf(other) })).toContain('join it again')
  })

  it('refuses a certificate that was signed before its name was given to this machine', async () => {
    await db.updateTable('hosts').set({ member_since: new Date() }).where('id', '=', host.id).execute()
    expect(await refusalOf({ host: host.name, request: await requestOf(host) })).toContain('another machine')
  })

  it('refuses the request of another data directory with the name of a host', async () => {
    const renewal = renewalOf(host.files, 'zzzz', [])
    const request = await requestOf({ ...host, renewal })
    expect(await refusalOf({ host: host.name, request })).toContain('another machine')
  })

  it('refuses a request in the name of another host, also if that host signs it', async () => {
    const other = await joinedHost()
    const request = await requestOf(host)
    expect(await refusalOf({ host: other.name, request })).toContain(`of the engine of ${host.name}`)
    const { certificate } = (await identitiesOf(other)).engine
    const changed = JSON.stringify({ ...(JSON.parse(request) as object), certificate })
    expect(await refusalOf({ host: other.name, request: changed })).toContain('not signed with the key')
    const own = await forged(other, request, { instance: host.instance })
    expect(await refusalOf({ host: other.name, request: own })).toContain('another machine')
  })

  it.each<FleetRole>(['server', 'gateway'])(
    'refuses a request that is signed with the certificate of a %s',
    async (role) => {
      const request = await requestOf(host)
      const identity = await agedIdentity(
        dataDir,
        { role, host: host.name },
        { from: past(-DAY), to: past(DAY) },
      )
      await writeFile(host.files.engine, identity)
      expect(await refusalOf({ host: host.name, request: await forged(host, request, {}) })).toContain(
        'not that of an engine of this Berth',
      )
    },
  )

  it('signs for the roles of hosts alone', async () => {
    const request = await requestOf(host)
    const { requests } = JSON.parse(request) as { requests: Record<string, string> }
    const more = { requests: { ...requests, server: requests['engine'] } }
    expect(await refusalOf({ host: host.name, request: await forged(host, request, more) })).toContain(
      'something else',
    )
  })

  it('refuses an expired certificate, one of another Berth, and one that is not valid yet', async () => {
    const request = await requestOf(host)
    await age(host, { from: -365 * DAY, to: -MINUTE })
    const expired = await refusalOf({ host: host.name, request: await forged(host, request, {}) })
    expect(expired).toMatch(/^its certificate has ended on \S+; join it again$/)
    await age(host, { from: DAY, to: 2 * DAY })
    expect(await refusalOf({ host: host.name, request: await forged(host, request, {}) })).toContain(
      'not valid yet',
    )
    const stranger = join(dataDir, 'stranger')
    await mkdir(stranger)
    const member = { role: 'engine', host: host.name } as const
    await writeFile(host.files.engine, await issueIdentity(stranger, member, new Date()))
    expect(await refusalOf({ host: host.name, request: await forged(host, request, {}) })).toContain(
      'of this Berth',
    )
  })

  it('refuses a request that was changed, one of another time, and one that it has signed already', async () => {
    const request = await requestOf(host)
    const changed = JSON.stringify({ ...(JSON.parse(request) as object), at: clock.now().getTime() + 1 })
    expect(await refusalOf({ host: host.name, request: changed })).toContain('not signed with the key')
    const late = await forged(host, request, { at: clock.now().getTime() - 3 * MINUTE })
    expect(await refusalOf({ host: host.name, request: late })).toContain('of another time')
    expect(await refusalOf({ host: host.name, request })).toBe('signed')
    expect(await refusalOf({ host: host.name, request })).toContain('was answered already')
  })

  it('refuses signing requests that are none, and goes on', async () => {
    const request = await requestOf(host)
    const requests = { engine: Buffer.from('no request').toString('base64'), gateway: '' }
    const none = await forged(host, request, { requests })
    expect(await refusalOf({ host: host.name, request: none })).toContain('could not sign')
    expect(await refusalOf({ host: host.name, request })).toBe('signed')
  })

  it.each([
    ['no JSON', 'garbage\n'],
    ['another message', '{"id":1,"host":"a"}\n'],
    ['a line that is too long', 'x'.repeat(2 * RENEWAL_MAX_BYTES)],
    ['a request of links and paths', '{"id":1,"host":"../../fleet","request":"/etc/shadow","more":1}\n'],
  ])('ends a connection with %s, and answers the next one', async (_what, line) => {
    const socket = connect(socketPath)
    socket.on('error', () => {})
    socket.write(line)
    const closed = once(socket, 'close')
    expect(await text(socket).catch(() => '')).toBe('')
    await closed
    expect(await refusalOf({ host: '../../fleet', request: '/etc/shadow' })).toContain('something else')
    expect(await refusalOf({ host: host.name, request: await requestOf(host) })).toBe('signed')
  })
})
