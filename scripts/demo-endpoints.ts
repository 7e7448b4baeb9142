// `npm run demo`: publishes a PostgreSQL and a website, puts both to sleep, and has real clients wake and use them
// over TLS that they verify. Prints the time to each response; the exit code says whether all responses were
// correct. It runs a temporary instance with its own directory and ports, and removes it.

import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import type { Exposed, Protocol } from '../src/contract/endpoint.ts'
import type { RunResult } from '../src/contract/run-result.ts'
import type { Unit } from '../src/contract/unit.ts'
import { Berth, eventually, makeDataDir } from '../test/support/berth.ts'
import {
  clone,
  download,
  hashOfLarge,
  makeRepository,
  memoryDuring,
  openBrowser,
} from '../test/support/visitors.ts'

const run = promisify(execFile)

const FROZEN_FOR_S = 4
/** The loop that stops frozen units comes by every five seconds. */
const STOPPED_AFTER_MS = (FROZEN_FOR_S + 7) * 1000
const DOWNLOAD_MEGABYTES = 2048
const PASSWORD = 'not-secret'
const PAGE = '<!doctype html><title>Hello</title>'

const home = await mkdtemp('/var/tmp/berth-demo-')
const data = await makeDataDir()
const berth = new Berth(data.path).launch({ BERTH_FROZEN_FOR: `${FROZEN_FOR_S}s` })
let failures = 0
try {
  await berth.ready()
  await demonstrate()
} finally {
  await destroyAll().catch(() => {})
  await berth.pressCtrlC()
  await data.remove()
  await rm(home, { recursive: true })
}
console.log(
  failures === 0 ? '\nEvery client was answered.' : `\n${failures} clients were not answered rightly.`,
)
process.exit(failures === 0 ? 0 : 1)

async function demonstrate(): Promise<void> {
  const caFile = berth.credentials.caFile ?? ''
  const ca = await readFile(caFile, 'utf8')
  const db = await publishDatabase()
  const web = await publishSite()
  console.log(`PostgreSQL  ${db.url}\nwebsite     ${web.url}\n`)

  const curl = async () => (await run('curl', ['-sf', '--cacert', caFile, `${web.url}/`])).stdout
  const psql = async () => {
    const url = `${db.url.replace('://', '://postgres@')}/postgres?sslmode=verify-full&sslrootcert=${caFile}`
    const env = { ...process.env, PGPASSWORD: PASSWORD }
    return (await run('psql', [url, '-AtXc', 'select 6 * 7'], { env })).stdout.trim()
  }
  const byPg = async () => {
    const { hostname: host, port } = new URL(db.url.replace('postgres:', 'https:'))
    const who = { user: 'postgres', password: PASSWORD, database: 'postgres' }
    const client = new pg.Client({ host, port: Number(port), ...who, ssl: { ca } })
    await client.connect()
    const { rows } = await client.query<{ answer: number }>('select 6 * 7 as answer')
    await client.end()
    return String(rows[0]?.answer)
  }
  // Both may still be making what they serve.
  await eventually(async () => [await psql(), await curl()])

  const browser = await openBrowser(home, caFile)
  const browse = async () => {
    const page = await browser.newPage()
    await page.goto(`${web.url}/`)
    const title = await page.title()
    await page.close()
    return title
  }
  const git = () => clone(web.url, join(home, 'clone'), caFile)

  for (const tier of ['frozen', 'cold'] as const) {
    await attempt({ client: 'psql', tier, unit: db.unit, ask: psql, expected: '42' })
    await attempt({ client: 'pg', tier, unit: db.unit, ask: byPg, expected: '42' })
    await attempt({ client: 'curl', tier, unit: web.unit, ask: curl, expected: PAGE })
    await attempt({ client: 'chromium', tier, unit: web.unit, ask: browse, expected: 'Hello' })
  }
  await attempt({ client: 'git clone', tier: 'frozen', unit: web.unit, ask: git, expected: 'cloned\n' })
  await browser.close()

  const gateway = (await berth.pidOf('gateway')) ?? 0
  const large = () => download(web.url, DOWNLOAD_MEGABYTES, ca)
  const { before, most } = await memoryDuring(gateway, () =>
    attempt({
      client: 'a download of 2 GB',
      tier: 'frozen',
      unit: web.unit,
      ask: large,
      expected: hashOfLarge(DOWNLOAD_MEGABYTES),
    }),
  )
  const megabytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MB`
  console.log(
    `The gateway took ${megabytes(before)} before the download, and ${megabytes(most)} at most during it.`,
  )
}

type Attempt = {
  client: string
  tier: 'frozen' | 'cold'
  unit: Unit
  ask: () => Promise<string>
  expected: string
}

async function attempt({ client, tier, unit, ask, expected }: Attempt): Promise<void> {
  // What was sent a moment before is told a moment later, and would wake it.
  await delay(1000)
  await eventually(() => call('POST', `/v1/units/${unit.id}/sleep`, { sleep: '10m', now: true }))
  if (tier === 'cold') await delay(STOPPED_AFTER_MS)
  const { state } = await call<Unit>('GET', `/v1/units/${unit.id}`)
  const begun = performance.now()
  const answer = await ask().catch((error: unknown) => String(error))
  const tookMs = Math.round(performance.now() - begun)
  const isRight = state === 'sleeping' && answer === expected
  if (!isRight) failures += 1
  const verdict = isRight ? `${tookMs} ms` : `${state}, answered ${answer.slice(0, 200)}`
  console.log(`${client.padEnd(20)} ${tier.padEnd(8)} ${verdict}`)
}

type Published = { unit: Unit; url: string }

async function publishDatabase(): Promise<Published> {
  const env = { POSTGRES_PASSWORD: PASSWORD }
  const spec = { name: 'db', image: 'berth.local/postgres:15', ports: [5432], env }
  return await publish(spec, 5432, 'postgres')
}

async function publishSite(): Promise<Published> {
  const program = await readFile(new URL('../test/support/servers/web.py', import.meta.url), 'utf8')
  const files = { '/srv/server.py': program, '/srv/site/index.html': PAGE }
  const repository = await makeRepository(home, 'cloned\n')
  const spec = {
    name: 'web',
    image: 'berth.local/python:3.11',
    cmd: ['python3', '/srv/server.py'],
    files: { ...files, ...repository },
    env: { PORT: '8000' },
    ports: [8000],
  }
  return await publish(spec, 8000, 'http')
}

async function publish(spec: Record<string, unknown>, port: number, protocol: Protocol): Promise<Published> {
  const { units } = await call<RunResult>('POST', '/v1/units', { spec, waitTimeoutMs: 300_000 })
  const [unit] = units
  if (!unit) throw new Error('a create answered no unit')
  const { url } = await call<Exposed>('POST', `/v1/units/${unit.id}/expose`, { port, protocol })
  return { unit, url }
}

async function destroyAll(): Promise<void> {
  const { units } = await call<{ units: Unit[] }>('GET', '/v1/units')
  for (const { id } of units) await call('DELETE', `/v1/units/${id}`)
}

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await berth.call<T>(method, path, body)
  if (answer.status < 300) return answer.body
  throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
}
