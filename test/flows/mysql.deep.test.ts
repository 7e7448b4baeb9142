// A real MariaDB in a unit over the gateway's shared MySQL port, with Debian's client, which sends no SNI, and mysql2, which
// does. Each wakes the unit from a freeze and from a cold start.

import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Connection, createConnection } from 'mysql2/promise'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Exposed } from '../../src/contract/endpoint.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { eventually } from '../support/berth.ts'
import { createUnit } from '../support/berth-units.ts'
import { useBerth } from '../support/use-berth.ts'

const run = promisify(execFile)
const PASSWORD = 'correct horse'

const berth = useBerth({ BERTH_FROZEN_FOR: '3s' })
let unit: Unit
let url: URL
let open: Connection[] = []

beforeAll(async () => {
  unit = await createUnit(berth, {
    name: 'shop',
    image: 'berth.local/mariadb:10.11',
    env: {
      MARIADB_ROOT_PASSWORD: PASSWORD,
      MARIADB_USER: 'keeper',
      MARIADB_PASSWORD: PASSWORD,
      MARIADB_DATABASE: 'shop',
    },
    ports: [3306],
  })
  const body = { port: 3306, protocol: 'mysql', mode: 'private' }
  const exposed = await berth.call<Exposed>('POST', `/v1/units/${unit.id}/expose`, body)
  expect(exposed.status, JSON.stringify(exposed.body)).toBe(200)
  url = new URL(exposed.body.url)
  // The unit is running when the create returns, but MariaDB first creates its database.
  await eventually(async () => await (await withLibrary()).end(), 120_000)
})
afterEach(async () => {
  for (const connection of open) connection.destroy()
  open = []
})
const stateOf = async () => (await berth.call<Unit>('GET', `/v1/units/${unit.id}`)).body.state

/** Waits for the state, because a request is forwarded before the unit's row is updated. */
const untilAwake = async () => await expect.poll(stateOf).toBe('running')

async function fallAsleep(tier: 'frozen' | 'cold'): Promise<void> {
  await eventually(async () => {
    const answer = await berth.call('POST', `/v1/units/${unit.id}/sleep`, { sleep: '10m', now: true })
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  })
  // Long enough for the frozen machine to be stopped.
  if (tier === 'cold') await new Promise((resolve) => setTimeout(resolve, 10_000))
  expect(await stateOf()).toBe('sleeping')
}

/** Verifies the certificate for the name in the URL, but connects to this host whatever the resolver says. */
async function withLibrary(password = PASSWORD, user = 'keeper'): Promise<Connection> {
  const connection = await createConnection({
    stream: () => connect(Number(url.port), '127.0.0.1'),
    host: url.hostname,
    user,
    password,
    database: 'shop',
    ssl: { ca: await readFile(berth.credentials.caFile ?? '', 'utf8'), verifyIdentity: true },
  } as Parameters<typeof createConnection>[0])
  open.push(connection)
  return connection
}

/** Returns the client's output or its error message. */
async function withClient(query: string, { user, password = PASSWORD }: { user: string; password?: string }) {
  const args = ['--no-defaults', '--ssl', `--ssl-ca=${berth.credentials.caFile ?? ''}`, '--batch', '-N']
  const to = ['--protocol=tcp', '-h', '127.0.0.1', '-P', url.port, '-u', user, `--password=${password}`]
  return await run('mariadb', [...args, ...to, '-e', query], { timeout: 60_000 }).then(
    ({ stdout }) => stdout.trim(),
    (error: { stderr?: string }) => error.stderr ?? '',
  )
}

const label = () => url.hostname.split('.')[0] ?? ''

async function sleeping(connection: Connection): Promise<number> {
  const question =
    "select count(*) as count from information_schema.processlist where info like 'select sleep(1%'"
  const [rows] = await connection.query(question)
  return Number((rows as { count: number }[])[0]?.count)
}
const untilSleeping = async (connection: Connection) =>
  await expect.poll(() => sleeping(connection), { timeout: 20_000 }).toBe(1)

describe('a MariaDB in a unit', () => {
  it.each(['frozen', 'cold'] as const)(
    'is woken by mysql2 and by the mariadb client while it is %s',
    async (tier) => {
      const first = await withLibrary()
      await first.query('create table if not exists visits (tier varchar(10), program varchar(10))')
      await first.end()
      await fallAsleep(tier)
      const library = await withLibrary()
      await library.query('insert into visits values (?, ?)', [tier, 'library'])
      await library.end()
      await untilAwake()
      await fallAsleep(tier)
      const query = `insert into shop.visits values ('${tier}', 'client'); select count(*) from shop.visits where tier = '${tier}'`
      expect(await withClient(query, { user: `${label()}.keeper` })).toBe('2')
      await untilAwake()
    },
  )

  it('reports a wrong password or an unknown user with its own error', async () => {
    const wrong = { code: 'ER_ACCESS_DENIED_ERROR', errno: 1045 }
    await expect(withLibrary('wrong')).rejects.toMatchObject(wrong)
    await expect(withLibrary(PASSWORD, 'nobody')).rejects.toThrow("Access denied for user 'nobody'")
    expect(await withClient('select 1', { user: `${label()}.keeper`, password: 'wrong' })).toContain(
      "ERROR 1045 (28000): Access denied for user 'keeper'",
    )
  })

  it.each(['mysql_native_password', 'ed25519'])(
    'accepts a user with the authentication plugin %s',
    async (plugin) => {
      const made = `create or replace user 'one'@'%' identified via ${plugin} using password('${PASSWORD}')`
      const known = "install plugin if not exists ed25519 soname 'auth_ed25519'"
      const statements = `${known}; ${made}; grant all on shop.* to 'one'@'%'`
      expect(await withClient(statements, { user: `${label()}.root` })).toBe('')
      expect(await withClient('select current_user()', { user: `${label()}.one` })).toBe('one@%')
    },
  )

  it('returns large results and prepared statements unchanged', async () => {
    const connection = await withLibrary()
    const [rows] = await connection.query(
      "select seq, repeat(char(65 + seq % 26 using utf8mb4), 1000) as text from seq_1_to_20000 where 'ä' = ?",
      ['ä'],
    )
    const texts = rows as { seq: number; text: string }[]
    expect(texts).toHaveLength(20_000)
    for (const { seq, text } of texts) expect(text).toBe(String.fromCharCode(65 + (seq % 26)).repeat(1000))
    const [prepared] = await connection.execute('select ? + 1 as sum, version() as version', [41])
    expect(prepared).toMatchObject([{ sum: 42, version: expect.stringContaining('MariaDB') }])
  })

  it('ends a query that is killed by the id of its greeting or by connection_id()', async () => {
    const [busy, other] = [await withLibrary(), await withLibrary()]
    const [rows] = await busy.query('select connection_id() as id')
    const own = (rows as { id: number }[])[0]?.id
    for (const id of [busy.threadId, own]) {
      // Depending on the server version, an interrupted sleep returns a result or an error.
      const interrupted = busy.query('select sleep(120)').catch(() => {})
      await untilSleeping(other)
      // A unit is not frozen during a query.
      await new Promise((resolve) => setTimeout(resolve, 1000))
      const body = { sleep: '10m', now: true }
      const refused = await berth.call('POST', `/v1/units/${unit.id}/sleep`, body)
      const details = { busy: [unit.id], endpoints: [expect.any(String)] }
      expect(refused).toMatchObject({ status: 409, body: { error: { details } } })
      await other.query(`KILL QUERY ${id}`)
      await interrupted
    }
    const gone = new Promise((resolve) => busy.on('error', resolve))
    await other.query('KILL ?', [busy.threadId])
    await gone
  })

  it('ends a query when its client is interrupted with Ctrl-C', async () => {
    const other = await withLibrary()
    const args = ['--no-defaults', '--ssl', `--ssl-ca=${berth.credentials.caFile ?? ''}`, '--batch', '-N']
    const to = ['--protocol=tcp', '-h', '127.0.0.1', '-P', url.port, '-u', `${label()}.keeper`]
    const client = run('mariadb', [...args, ...to, `--password=${PASSWORD}`, '-e', 'select sleep(120)'])
    const over = client.catch(() => {})
    await untilSleeping(other)
    client.child.kill('SIGINT')
    await over
    await expect.poll(() => sleeping(other)).toBe(0)
  })

  it('stays asleep with an open connection until the next query', async () => {
    const connection = await withLibrary()
    await eventually(async () => {
      await connection.query('select 1')
      const body = { sleep: '10m', now: true }
      expect((await berth.call('POST', `/v1/units/${unit.id}/sleep`, body)).status).toBe(200)
    })
    // Three polls of open connections by the gateway.
    await new Promise((resolve) => setTimeout(resolve, 1600))
    expect(await stateOf()).toBe('sleeping')
    await connection.query('select 1')
    await untilAwake()
  })

  it('has its sessions ended with a MySQL error when its endpoint is rotated', async () => {
    const connection = await withLibrary()
    await connection.query('select 1')
    const ended = new Promise<Error>((resolve) => connection.on('error', resolve))
    const body = { port: 3306, protocol: 'mysql', mode: 'private', rotate: true }
    const exposed = await berth.call<Exposed>('POST', `/v1/units/${unit.id}/expose`, body)
    expect(await ended).toMatchObject({ message: expect.stringContaining('the unit stops or falls asleep') })
    await expect(withLibrary()).rejects.toThrow('There is nothing at this address')
    url = new URL(exposed.body.url)
    await (await withLibrary()).end()
  })

  it('is connected to with TLS if it supports TLS', async () => {
    const secure = await createUnit(berth, {
      name: 'secure',
      image: 'berth.local/mariadb:10.11',
      cmd: ['mariadbd', '--ssl-cert=/srv/tls/cert.pem', '--ssl-key=/srv/tls/key.pem'],
      env: { MARIADB_ROOT_PASSWORD: PASSWORD },
      files: await makeCertificate(),
      ports: [3306],
    })
    const body = { port: 3306, protocol: 'mysql', mode: 'public' }
    const exposed = await berth.call<Exposed>('POST', `/v1/units/${secure.id}/expose`, body)
    const [name = ''] = new URL(exposed.body.url).hostname.split('.')
    const version = () => withClient("show status like 'Ssl_version'", { user: `${name}.root` })
    await eventually(async () => expect(await version()).toBe('Ssl_version\tTLSv1.3'), 120_000)
  })
})

/** Creates a self-signed certificate, as servers do by default. */
async function makeCertificate(): Promise<Record<string, string>> {
  const made = await mkdtemp('/var/tmp/berth-mysql-')
  const [key, cert] = [join(made, 'key.pem'), join(made, 'cert.pem')]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=itself']
  await run('openssl', ['req', '-x509', ...kind, '-keyout', key, '-out', cert])
  const files = {
    '/srv/tls/key.pem': await readFile(key, 'utf8'),
    '/srv/tls/cert.pem': await readFile(cert, 'utf8'),
  }
  await rm(made, { recursive: true })
  return files
}

describe('a MySQL client', () => {
  it('that names no unit is told how to', async () => {
    expect(await withClient('select 1', { user: 'keeper' })).toContain(
      "Put the first part of the unit's host name before the user name",
    )
  })

  it('without TLS is told to use it and does not wake the unit', async () => {
    await fallAsleep('frozen')
    const plain = ['--no-defaults', '--skip-ssl', '--protocol=tcp', '-h', '127.0.0.1', '-P', url.port]
    const user = ['-u', `${label()}.keeper`, `--password=${PASSWORD}`]
    await expect(run('mariadb', [...plain, ...user, '-e', 'select 1'])).rejects.toMatchObject({
      stderr: expect.stringContaining('use --ssl (MariaDB)'),
    })
    expect(await stateOf()).toBe('sleeping')
  })
})
