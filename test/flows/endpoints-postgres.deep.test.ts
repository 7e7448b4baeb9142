// A real PostgreSQL in a unit with its real clients at an endpoint: they wake it, keep it awake while they wait for a
// response, and get a proper error when it goes away.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/berth.ts'
import {
  hibernate,
  freeze,
  FROZEN_FOR_S,
  type Published,
  publish,
  unitOf,
  waking,
} from '../support/published.ts'
import { useBerth } from '../support/use-berth.ts'

const run = promisify(execFile)

const berth = useBerth({ BERTH_FROZEN_FOR: `${FROZEN_FOR_S}s` })
let ca: string
let shop: Published
let other: Published
/** One runs a query for longer than its sleep window; the other has only an idle client. */
let busy: Published
let quiet: Published
let hasAnswered = false
const clients: pg.Client[] = []

const passwordOf = ({ unit }: Published) => `password of ${unit.name}`

beforeAll(async () => {
  ca = await readFile(berth.credentials.caFile ?? '', 'utf8')
  // The first one alone, because the image may have to be built.
  shop = await publishDatabase('shop')
  ;[other, busy, quiet] = await Promise.all([
    publishDatabase('other'),
    publishDatabase('busy', '1m'),
    publishDatabase('quiet', '1m'),
  ])
  await connect(quiet)
  const working = await connect(busy)
  const answered = () => {
    hasAnswered = true
  }
  working.query('select pg_sleep(600)').then(answered, answered)
})
afterAll(async () => {
  for (const client of clients) await client.end().catch(() => {})
})

async function publishDatabase(name: string, sleep = '10m'): Promise<Published> {
  const env = { POSTGRES_PASSWORD: `password of ${name}` }
  const spec = { name, image: 'berth.local/postgres:15', ports: [5432], env, sleep }
  const published = await publish(berth, spec, { port: 5432, protocol: 'postgres' })
  // PostgreSQL initializes its cluster first.
  await eventually(() => ask(published))
  return published
}

/** Connects as the owner of the endpoint, unless the options say otherwise. */
async function connect(to: Published, options: pg.ClientConfig = {}): Promise<pg.Client> {
  const { host, port } = to
  const who = { user: 'postgres', database: 'postgres', password: passwordOf(to) }
  const client = new pg.Client({ host, port, ...who, ssl: { ca }, ...options })
  client.on('error', () => {})
  clients.push(client)
  await client.connect()
  return client
}

async function ask(to: Published, options?: pg.ClientConfig): Promise<unknown> {
  const client = await connect(to, options)
  const { rows } = await client.query<{ answer: number }>('select 6 * 7 as answer')
  await client.end()
  return rows[0]?.answer
}

/** Opens direct TLS, as clients of PostgreSQL 17 can do. */
async function directTls({ host, port }: Published): Promise<TLSSocket> {
  const socket = connectTls({ host, port, servername: host, ca, ALPNProtocols: ['postgresql'] })
  await once(socket, 'secureConnect')
  return socket
}

async function askDirectly(to: Published): Promise<unknown> {
  const socket = await directTls(to)
  expect(socket.alpnProtocol).toBe('postgresql')
  // The client connects the stream it is given, but this one is already connected.
  const connected = () => setImmediate(() => socket.emit('connect'))
  return await ask(to, { stream: () => Object.assign(socket, { connect: connected }), ssl: false })
}

function psqlOf(to: Published, ...args: string[]) {
  const url = `${to.url.replace('://', '://postgres@')}/postgres`
  const trust = `sslmode=verify-full&sslrootcert=${berth.credentials.caFile}`
  const env = { ...process.env, PGPASSWORD: passwordOf(to) }
  return { args: [`${url}?${trust}`, '--no-psqlrc', '--tuples-only', '--no-align', ...args], env }
}

async function psql(to: Published): Promise<string> {
  const { args, env } = psqlOf(to, '--command=select 6 * 7')
  return (await run('psql', args, { env })).stdout
}

describe('a sleeping PostgreSQL', () => {
  it('is woken by psql, from a freeze and from a cold start', async () => {
    await freeze(berth, shop.unit)
    expect(await waking(berth, shop.unit, 'frozen', () => psql(shop))).toBe('42\n')
    await hibernate(berth, [shop.unit])
    expect(await waking(berth, shop.unit, 'cold', () => psql(shop))).toBe('42\n')
  })

  it('is woken by the pg library', async () => {
    await freeze(berth, shop.unit)
    expect(await waking(berth, shop.unit, 'frozen', () => ask(shop))).toBe(42)
  })

  it('is woken by a client that uses direct TLS', async () => {
    await freeze(berth, shop.unit)
    expect(await waking(berth, shop.unit, 'frozen', () => askDirectly(shop))).toBe(42)
  })

  it('rejects a wrong password with its own error, also the password of another unit', async () => {
    await freeze(berth, other.unit)
    const stranger = () => connect(other, { password: passwordOf(shop) }).catch((error: unknown) => error)
    expect(await waking(berth, other.unit, 'frozen', stranger)).toMatchObject({
      code: '28P01',
      message: 'password authentication failed for user "postgres"',
    })
  })

  it('is not woken by the endpoint secret of another unit', async () => {
    await freeze(berth, other.unit)
    const secretOf = ({ host }: Published) => host.split('.')[0]?.slice(-26) ?? ''
    const host = other.host.replace(secretOf(other), secretOf(shop))
    await expect(connect(other, { host })).rejects.toMatchObject({ code: '08004' })
    expect((await unitOf(berth, other.unit)).state).toBe('sleeping')
  })
})

describe('a PostgreSQL session', () => {
  it('continues with its next query after its unit was frozen', async () => {
    const client = await connect(shop)
    await client.query('create temporary table kept as select 7 as answer')
    await freeze(berth, shop.unit)
    const { rows } = await waking(berth, shop.unit, 'frozen', () => client.query('select answer from kept'))
    expect(rows).toEqual([{ answer: 7 }])
  })

  it.each(['frozen for long', 'stopped'])('ends with 57P01 when its unit is %s', async (what) => {
    const client = await connect(other)
    const ended = once(client, 'error') as Promise<[Error]>
    if (what === 'stopped') await berth.call('POST', `/v1/units/${other.unit.id}/stop`)
    else await freeze(berth, other.unit)
    expect((await ended)[0]).toMatchObject({ code: '57P01' })
    await berth.call('POST', `/v1/units/${other.unit.id}/start`)
  })
})

describe('a cancel request', () => {
  it('over TLS cancels the query of its key and no other', async () => {
    const [victim, bystander] = [await connect(shop), await connect(shop)]
    const late = expect(victim.query('select pg_sleep(60)')).rejects.toMatchObject({ code: '57014' })
    const going = bystander.query("select pg_sleep(2), 'on' as goes")
    const { processID, secretKey } = victim as unknown as { processID: number; secretKey: number }
    const request = Buffer.alloc(16)
    for (const [index, word] of [16, 80_877_102].entries()) request.writeInt32BE(word, index * 4)
    request.writeInt32BE(processID, 8)
    request.writeInt32BE(secretKey, 12)
    const asking = await directTls(shop)
    asking.write(request)
    await Promise.all([late, once(asking.resume(), 'end')])
    expect((await going).rows).toMatchObject([{ goes: 'on' }])
  })

  it('in plain text, as psql sends it, cancels the query', async () => {
    const { args, env } = psqlOf(shop, '--command=select pg_sleep(60)')
    const child = spawn('psql', args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
    const said = read(child)
    await eventually(async () => {
      const client = await connect(shop)
      const { rowCount } = await client.query(
        "select 1 from pg_stat_activity where query = 'select pg_sleep(60)' and state = 'active'",
      )
      await client.end()
      expect(rowCount).toBe(1)
    })
    child.kill('SIGINT')
    expect(await said).toContain('canceling statement due to user request')
  })
})

async function read(child: ChildProcess): Promise<string> {
  let text = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  await once(child, 'close')
  return text
}

describe('a unit with a sleep window of one minute', () => {
  it('stays awake while a client waits for a response and falls asleep under an idle client', async () => {
    await eventually(async () => expect((await unitOf(berth, quiet.unit)).state).toBe('sleeping'), 110_000)
    expect((await unitOf(berth, busy.unit)).state).toBe('running')
    expect(hasAnswered).toBe(false)
  })
})
