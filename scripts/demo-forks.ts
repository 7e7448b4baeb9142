// `npm run demo:forks`: forks a stack of web server, API and database under load into a new stack. Prints what was copied of
// each unit, compares the data of both stacks, changes each separately, and has them sleep and wake with their memory.
// The exit code says whether everything was correct. It runs a temporary instance and removes it.

import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import type { Exposed } from '../src/contract/endpoint.ts'
import type { ForkResult } from '../src/contract/fork.ts'
import type { RunResult } from '../src/contract/run-result.ts'
import type { Stack } from '../src/contract/stack.ts'
import type { Unit } from '../src/contract/unit.ts'
import { Berth, eventually, makeDataDir } from '../test/support/berth.ts'

const VISITORS = 4
const FROZEN_FOR_S = 2
/** The loop that stops frozen units comes by every five seconds. */
const STOPPED_AFTER_MS = (FROZEN_FOR_S + 8) * 1000
const PASSWORD = 'not-secret'

/** Answers every request with what `reply` says, and counts them in memory. */
const server = (reply: string) => `
use IO::Socket::INET; $SIG{TERM} = sub { exit }; $SIG{PIPE} = "IGNORE"; my $n = 0;
my $s = IO::Socket::INET->new(Listen => 64, LocalPort => 8000, ReuseAddr => 1) or die;
while (1) {
  my $c = $s->accept or next; my $asked = <$c>; while (<$c>) { last if /^\\r?$/ } $n++;
  my ($status, $said) = sub { ${reply} }->();
  print $c "HTTP/1.1 $status x\\r\\nconnection: close\\r\\ncontent-length: " . length($said) . "\\r\\n\\r\\n$said"; close $c
}`
/** A row for each request, of the number that the visitor gave it. */
const api = server(`
  my ($row) = $asked =~ m{/(\\d+)} or return (404, "");
  my $rows = qx{psql -h db -U postgres -qAtX -c "insert into visits values ($row)" -c "select count(*) from visits"};
  $? ? (503, "") : (200, "api $n, rows $rows")`)
const web = server(`
  my $up = IO::Socket::INET->new(PeerAddr => "api:8000", Timeout => 5) or return (502, "");
  my ($path) = $asked =~ m{^GET (\\S+)}; print $up "GET $path HTTP/1.1\\r\\n\\r\\n"; local $/;
  my ($code, $body) = <$up> =~ m{^HTTP/1.1 (\\d+).*?\\r\\n\\r\\n(.*)}s; ($code || 502, "web $n, $body")`)

const data = await makeDataDir()
const berth = new Berth(data.path).launch({ BERTH_ISOLATION: 'runc', BERTH_FROZEN_FOR: `${FROZEN_FOR_S}s` })
let failures = 0
let ca = ''
try {
  await berth.ready()
  ca = await readFile(berth.credentials.caFile ?? '', 'utf8')
  await demonstrate()
} finally {
  for (const name of ['shop', 'trial']) await call('DELETE', `/v1/stacks/${name}`).catch(() => {})
  await berth.pressCtrlC()
  await data.remove()
}
console.log(
  failures === 0 ? '\nAll of it was as it should be.' : `\n${failures} things were not as they should be.`,
)
process.exit(failures === 0 ? 0 : 1)

async function demonstrate(): Promise<void> {
  const url = await makeShop()
  const load = startLoad(url)
  await delay(5000)

  const acknowledged = new Set(load.acknowledged)
  const begun = performance.now()
  const fork = await call<ForkResult>('POST', '/v1/stacks/shop/fork', { into: 'trial' })
  const tookMs = Math.round(performance.now() - begun)
  console.log(
    `Forked in ${tookMs} ms, while ${load.acknowledged.size - acknowledged.size} visits were answered.`,
  )
  for (const [name, copied] of Object.entries(fork.copied)) console.log(`  ${name.padEnd(4)} ${copied}`)

  const rows = await rowsOf('trial')
  const missing = [...acknowledged].filter((row) => !rows.has(row))
  check(
    `of ${acknowledged.size} rows acknowledged before the fork its database lacks ${missing.length}`,
    missing.length === 0,
  )
  await delay(2000)
  const { failed } = await load.stop()
  check(`of ${load.acknowledged.size} visits to the source ${failed} were not answered`, failed === 0)
  check(
    'the source went on, and its copy did not',
    (await rowsOf('shop')).size > (await rowsOf('trial')).size,
  )

  const copyUrl = await publish(await unitOf('trial', 'web'))
  await visit(copyUrl, 1_000_001)
  check('what the copy was told its source does not know', !(await rowsOf('shop')).has(1_000_001))
  check('nor the other way round', !(await rowsOf('trial')).has(Math.max(...load.acknowledged)))

  for (const [stack, at] of Object.entries({ shop: url, trial: copyUrl })) {
    const before = countsIn(await visit(at, Date.now()))
    await call('POST', `/v1/units/${(await unitOf(stack, 'web')).id}/sleep`, {
      sleep: '10m',
      stack: true,
      now: true,
    })
    await delay(STOPPED_AFTER_MS)
    const states = (await call<Stack>('GET', `/v1/stacks/${stack}`)).units.map(({ state }) => state)
    const woken = performance.now()
    const after = countsIn(await visit(at, Date.now()))
    console.log(
      `${stack} woke in ${Math.round(performance.now() - woken)} ms: ${before.join(', ')} to ${after.join(', ')}`,
    )
    check(
      `all of ${stack} had slept`,
      states.every((state) => state === 'sleeping'),
    )
    check(
      `web, API and database of ${stack} count on`,
      after.every((count, i) => count > (before[i] ?? 0)),
    )
  }
}

async function makeShop(): Promise<string> {
  const image = 'berth.local/postgres:15'
  const secret = { POSTGRES_PASSWORD: PASSWORD }
  const ask = (sql: string) => ['psql', '-U', 'postgres', '-qAtXc', sql]
  const db = {
    name: 'db',
    image,
    size: 'medium',
    env: secret,
    healthcheck: { cmd: ask('select 1'), timeoutMs: 60_000 },
  }
  const database = await create(db)
  await exec(database, ask('create table visits (n bigint primary key)'))
  const base = { size: 'small', ports: [8000] }
  const reachable = { cmd: ['bash', '-c', 'exec 3<>/dev/tcp/127.0.0.1/8000'], timeoutMs: 20_000 }
  const program = (text: string) => ({ entrypoint: ['perl', '-e', text], healthcheck: reachable })
  await create({ ...base, name: 'api', image, env: { PGPASSWORD: PASSWORD }, ...program(api) })
  return await publish(
    await create({ ...base, name: 'web', image: 'berth.local/debian:12', ...program(web) }),
  )
}

type Load = { acknowledged: Set<number>; stop(): Promise<{ failed: number }> }

/** Visits that come one after the other from each of a few, until stopped. */
function startLoad(url: string): Load {
  const acknowledged = new Set<number>()
  let [next, failed, isOver] = [1, 0, false]
  const visitor = async () => {
    while (!isOver) {
      const row = next++
      await visit(url, row).then(
        () => acknowledged.add(row),
        () => failed++,
      )
    }
  }
  const visitors = Array.from({ length: VISITORS }, visitor)
  const stop = async () => {
    isOver = true
    await Promise.all(visitors)
    return { failed }
  }
  return { acknowledged, stop }
}

function visit(url: string, row: number): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const to = {
      host: '127.0.0.1',
      port,
      path: `/${row}`,
      servername: hostname,
      headers: { host: hostname },
      ca,
      agent: false,
    }
    const asked = request(to, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => (text += part))
      answer.once('end', () => {
        if (answer.statusCode === 200) resolve(text.trim())
        else reject(new Error(`answered with ${answer.statusCode}: ${text.slice(0, 200)}`))
      })
    })
    asked.on('error', reject).end()
  })
}

/** `web 3, api 3, rows 3` as numbers. */
function countsIn(answer: string): number[] {
  return [...answer.matchAll(/\d+/g)].map(([digits]) => Number(digits))
}

async function rowsOf(stack: string): Promise<Set<number>> {
  const said = await exec(await unitOf(stack, 'db'), [
    'psql',
    '-U',
    'postgres',
    '-qAtXc',
    'select n from visits',
  ])
  return new Set(said.split('\n').filter(Boolean).map(Number))
}

async function unitOf(stack: string, name: string): Promise<Unit> {
  const { units } = await call<Stack>('GET', `/v1/stacks/${stack}`)
  const unit = units.find((each) => each.name === name)
  if (!unit) throw new Error(`${stack} has no ${name}`)
  return unit
}

async function create(spec: Record<string, unknown>): Promise<Unit> {
  const body = { spec, stack: 'shop', waitTimeoutMs: 300_000 }
  const { units } = await call<RunResult>('POST', '/v1/units', body)
  const [unit] = units
  if (unit?.state !== 'running') throw new Error(`${String(spec['name'])} does not run: ${unit?.error}`)
  return unit
}

async function publish({ id, name }: Unit): Promise<string> {
  const { url } = await call<Exposed>('POST', `/v1/units/${id}/expose`, { port: 8000 })
  // A row that no other visitor has.
  await eventually(() => visit(url, Date.now()))
  console.log(`${name.padEnd(4)} ${url}`)
  return url
}

async function exec({ id }: Unit, cmd: string[]): Promise<string> {
  const said = await call<{ exitCode: number; stdout: string; stderr: string }>(
    'POST',
    `/v1/units/${id}/exec`,
    { cmd },
  )
  if (said.exitCode !== 0) throw new Error(`${cmd.join(' ')}: ${said.stderr}`)
  return said.stdout
}

function check(what: string, isSo: boolean): void {
  if (!isSo) failures += 1
  console.log(`${isSo ? 'ok  ' : 'NOT '} ${what}`)
}

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await berth.call<T>(method, path, body)
  if (answer.status < 300) return answer.body
  throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
}
