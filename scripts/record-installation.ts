// Records an installation of an older release for the tests of upgrades (test/support/recorded-installation.ts), and then
// upgrades that very installation to this release, with what runs and what is frozen, which no fixture can hold.
// Usage, as root: node scripts/record-installation.ts CHECKOUT, where CHECKOUT is a git worktree of the older release
// after its set-up.

import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import pg from 'pg'
import { expect } from 'vitest'
import type { Exposed } from '../src/contract/endpoint.ts'
import type { Unit } from '../src/contract/unit.ts'
import { getAccount } from '../src/lib/system-users.ts'
import { silentLog } from '../src/lib/log.ts'
import { runOrThrow } from '../src/lib/process.ts'
import { postgresSocketDir, runDirOf } from '../src/supervisor/instance.ts'
import { postgresUrl, startPostgres } from '../src/supervisor/postgres.ts'
import { Berth, eventually, IMAGES_DIR, makeDataDir } from '../test/support/berth.ts'
import { createUnit, destroyAll, exec, listUnits } from '../test/support/berth-units.ts'
import { cleanHost } from '../test/support/host-state.ts'
import {
  dumpRows,
  readTree,
  type Recorded,
  type RecordedDatabase,
} from '../test/support/recorded-installation.ts'

/** Of the data directory. Everything else is created again at a start, or is the database and the disks. */
const KEPT = ['instance.json', 'credentials.json']
const KEPT_TREES = ['roles/server', 'roles/gateway', 'ca', 'machines']

const [code = ''] = process.argv.slice(2)
const git = (...args: string[]) => spawnSync('git', ['-C', code, ...args], { encoding: 'utf8' }).stdout.trim()
const commit = git('rev-parse', '--short', 'HEAD')
if (commit === '') throw new Error('Say where a checkout of the older release is.')

const data = await makeDataDir()
const old = new Berth(data.path, code)
const keys = await makeUnits()
const disks = await backUpDisks()
const units = await listUnits(old)
const { id } = await old.instance()
const rows = await dumpBerth()
expect(await old.pressCtrlC()).toBe(0)
const recorded: Recorded = {
  commit,
  database: { schema: await schemaOf(), ...rows },
  files: await readFiles(),
  disks,
  units,
  keys,
}
const file = `test/fixtures/installation-${commit}.json.gz`
const bytes = gzipSync(JSON.stringify(recorded), { level: 9 })
await writeFile(file, bytes)
console.log(`${file}: ${bytes.length} bytes, ${Object.keys(disks).length} disks, ${units.length} units`)
await upgradeWhatRuns()
process.exit(0)

/** Of both classes, in each state that lasts, with what an owner would miss. Answers the keys. */
async function makeUnits(): Promise<Recorded['keys']> {
  const image = 'berth.local/debian:12'
  const volume = { mount: '/data', gb: 1 }
  const make = async (name: string, more: object = {}) => {
    const unit = await createUnit(old, { name, image, size: 'nano', volume, ...more }, 'shop')
    const script = `echo root of ${name} > /root/mark; echo volume of ${name} > /data/mark; echo ${name} > /dev/shm/mark; sync`
    expect((await exec(old, unit, ['sh', '-c', script])).exitCode).toBe(0)
    return unit
  }
  const act = async ({ id }: Unit, action: string, body?: object) => {
    const answer = await old.call<Exposed>('POST', `/v1/units/${id}/${action}`, body)
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
    return answer.body
  }
  const sleep = (unit: Unit) => act(unit, 'sleep', { sleep: '30m', now: true })

  await old.start({ BERTH_ISOLATION: 'gvisor', BERTH_FROZEN_FOR: '0s' })
  await sleep(await make('asleep-gvisor'))
  await old.start({ BERTH_ISOLATION: 'runc', BERTH_FROZEN_FOR: 'never' })
  const serve = ['sh', '-c', 'while :; do sleep 1000; done']
  const running = await make('running', {
    ports: [8000, 6379],
    cmd: serve,
    env: { WORD: { secret: 'WORD', value: 'hidden' } },
  })
  await act(running, 'expose', { port: 8000, protocol: 'http', mode: 'public' })
  await act(running, 'expose', { port: 6379, protocol: 'redis', mode: 'private' })
  await act(await make('stopped'), 'stop')
  const source = await make('source')
  await act(source, 'fork', { name: 'fork' })
  const frozen = await make('frozen', { ports: [8000] })
  await act(frozen, 'expose', { port: 8000, protocol: 'http', mode: 'private' })
  await sleep(frozen)
  await old.call('DELETE', `/v1/units/${(await make('gone')).id}`)
  return await makeKeys()
}

async function makeKeys(): Promise<Recorded['keys']> {
  const { baseUrl, signInUrl, apiKey } = old.credentials
  const token = new URL(signInUrl).searchParams.get('token') ?? ''
  const headers = { origin: baseUrl }
  const signedIn = await fetch(`${baseUrl}/sign-in`, {
    method: 'POST',
    body: new URLSearchParams({ token }),
    headers,
    redirect: 'manual',
  })
  const cookie = (signedIn.headers.getSetCookie()[0] ?? '').split(';')[0] ?? ''
  const ask = async (method: string, path: string, body?: object) => {
    const sent = body ? { body: JSON.stringify(body) } : {}
    const all = { ...headers, cookie, 'content-type': 'application/json' }
    const answer = await fetch(baseUrl + path, { method, headers: all, ...sent })
    const text = await answer.text()
    expect(answer.status, text).toBeLessThan(300)
    return text === '' ? {} : JSON.parse(text)
  }
  const [another, revoked] = [
    await ask('POST', '/v1/keys', { name: 'another' }),
    await ask('POST', '/v1/keys', { name: 'revoked' }),
  ]
  await ask('DELETE', `/v1/keys/${revoked.key.id}`)
  return { good: [apiKey, another.secret], revoked: revoked.secret }
}

/** By the older release's own backup: the disks as they are, while units run. */
async function backUpDisks(): Promise<Recorded['disks']> {
  const to = `${data.path}-backup`
  const env = { ...process.env, BERTH_DATA_DIR: data.path, BERTH_IMAGES_DIR: IMAGES_DIR, BERTH_POOL_GB: '16' }
  await runOrThrow('npm', ['--prefix', code, 'run', '--silent', 'backup', '--', to], {
    timeoutMs: 120_000,
    env,
  })
  const streams: Recorded['disks'] = {}
  for (const kind of ['disks', 'volumes'])
    for (const name of await readdir(join(to, kind)))
      streams[`${kind}/${name}`] = (await readFile(join(to, kind, name))).toString('base64')
  await rm(to, { recursive: true })
  return streams
}

async function dumpBerth() {
  const client = new pg.Client(postgresUrl(postgresSocketDir(runDirOf(await old.instance())), 'berth'))
  await client.connect()
  const rows = await dumpRows(client)
  await client.end()
  return rows
}

/** The statements of the older release's own migrations, heard on their way to an empty database. */
async function schemaOf(): Promise<RecordedDatabase['schema']> {
  const dir = await mkdtemp('/run/berth-record-')
  await runOrThrow('chmod', ['711', dir], { timeoutMs: 1000 })
  const postgres = await startPostgres({ dataDir: dir, socketDir: join(dir, 'socket'), log: silentLog })
  const { Client } = createRequire(join(code, 'package.json'))('pg') as typeof pg
  const heard: string[] = []
  const { query } = Client.prototype as unknown as { query: (this: unknown, ...args: unknown[]) => unknown }
  Client.prototype.query = function (this: unknown, ...args: unknown[]) {
    const [asked] = args
    const text = typeof asked === 'string' ? asked : (asked as { text?: string }).text
    if (text !== undefined) heard.push(text)
    return query.apply(this, args)
  } as never
  const { openDatabase } = await import(join(code, 'src/store/db.ts'))
  const { migrate } = await import(join(code, 'src/store/migrate.ts'))
  const db = openDatabase(postgres.url('berth'), silentLog)
  await migrate(db)
  await db.destroy()
  await postgres.stop()
  await rm(dir, { recursive: true })
  return heard.filter(
    (text) =>
      !/^\s*(begin|commit|start|set|select|with|insert|update|rollback|savepoint|release)\b/i.test(text),
  )
}

async function readFiles(): Promise<Recorded['files']> {
  const users = ['berth', 'berth-gateway'] as const
  const accounts = await Promise.all(users.map(async (name) => ({ ...(await getAccount(name)), name })))
  const trees = await Promise.all(KEPT_TREES.map((tree) => readTree(data.path, tree)))
  const files: Recorded['files'] = {}
  for (const path of [...KEPT, ...trees.flat().filter((path) => !path.includes('/compiled/'))]) {
    const { mode, uid } = await stat(join(data.path, path))
    const content = (await readFile(join(data.path, path))).toString('base64')
    files[path] = {
      mode: mode & 0o777,
      owner: accounts.find((account) => account.uid === uid)?.name ?? null,
      content,
    }
  }
  return files
}

/** What runs under this kernel goes on over the upgrade: the same runs, with their memory. */
async function upgradeWhatRuns(): Promise<void> {
  const berth = await new Berth(data.path).start({ BERTH_ISOLATION: 'runc', BERTH_FROZEN_FOR: 'never' })
  const told = (all: Unit[]) =>
    all.map(({ name, state, startedAt, endpoints }) => ({
      name,
      state,
      startedAt,
      urls: endpoints.map(({ url }) => url),
    }))
  expect(told(await listUnits(berth)).map((unit) => ({ ...unit, urls: [] }))).toEqual(
    told(units).map((unit) => ({ ...unit, urls: [] })),
  )
  for (const unit of await listUnits(berth)) {
    if (unit.state === 'stopped') continue
    const inMemory = await exec(berth, unit, ['sh', '-c', 'cat /dev/shm/mark /root/mark /data/mark; true'])
    console.log(unit.name, unit.state, JSON.stringify(inMemory.stdout))
  }
  await destroyAll(berth)
  expect(await berth.pressCtrlC()).toBe(0)
  await eventually(async () => expect(await berth.hostState()).toEqual(cleanHost))
  await data.remove()
  console.log(`The installation ${id} of ${commit} was upgraded with what ran.`)
}
