// `npm run demo:forks -- [--class gvisor] [--stacks 20]`: forks a stack of web server, API and database under load into new
// stacks. Prints what was copied of each unit, compares the data of both, changes each separately, and has them sleep and wake
// with their memory, and with the connections that they hold among each other. The exit code says whether everything was
// correct. It runs a temporary instance and removes it.

import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
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
/** On a machine that does other things besides, saving memory takes long. */
const SAVED_WITHIN_MS = 60_000
const PASSWORD = 'not-secret'
const QUIET_MS = 500
const LOADED_FOR_MS = 3000

const begin = `use IO::Handle; use IO::Socket::INET; use IPC::Open2; $SIG{TERM} = sub { exit }; $SIG{PIPE} = "IGNORE";
my ($n, $made, $in, $out, $up) = (0, 0); $| = 1;
my $s = IO::Socket::INET->new(Listen => 64, LocalPort => 8000, ReuseAddr => 1) or die;`
/**
 * Takes rows, a line each, over a connection that its client keeps. Writes each to the database over one that it keeps itself:
 * `made` counts how often it had to connect.
 */
const api = `${begin}
sub ask { my ($row) = @_; for (1 .. 3) {
  if (!$in) { open2($out, $in, qw(psql -h db -U postgres -qAtX)); $made++ }
  print $in "insert into visits values ($row) on conflict do nothing; select count(*) from visits;\\n"; $in->flush;
  my $rows = <$out>; if (defined $rows) { chomp $rows; return $rows }
  close $in; close $out; undef $in; wait } return "" }
while (1) { my $c = $s->accept or next; while (my $row = <$c>) { $row =~ /^(\\d+)/ or last; $n++;
  my $rows = ask($1); print $c "api $n, rows $rows, made $made\\n"; $c->flush } close $c }`
/** Answers visits, one after the other, with what the API says over a connection that it keeps. */
const web = `${begin}
sub ask { my ($row) = @_; for (1 .. 3) {
  if (!$up) { $up = IO::Socket::INET->new(PeerAddr => "api:8000", Timeout => 5) or next; $made++ }
  print $up "$row\\n"; $up->flush; my $said = <$up>; if (defined $said) { chomp $said; return $said }
  close $up; undef $up } return "" }
while (1) { my $c = $s->accept or next; my $asked = <$c>; while (<$c>) { last if /^\\r?$/ } $n++;
  my ($row) = $asked =~ m{/(\\d+)}; my $said = defined $row ? ask($row) : ""; my $status = $said ? 200 : 503;
  my $body = "web $n, $said, made $made";
  print $c "HTTP/1.1 $status x\\r\\nconnection: close\\r\\ncontent-length: " . length($body) . "\\r\\n\\r\\n$body"; close $c }`

const { values: options } = parseArgs({
  options: {
    class: { type: 'string', default: 'gvisor' },
    stacks: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
})
if (options.help) {
  console.log(
    'npm run demo:forks -- [--class gvisor] [--stacks 1]\n\n--stacks N  how many copies are made, one after the other',
  )
  process.exit(0)
}

const data = await makeDataDir()
const berth = new Berth(data.path).launch({
  BERTH_ISOLATION: options.class,
  BERTH_FROZEN_FOR: `${FROZEN_FOR_S}s`,
})
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
  const count = Number(options.stacks)
  for (let round = 1; round <= count; round += 1) {
    console.log(`\nStack ${round} of ${count}`)
    await forkOnce(url)
    await call('DELETE', '/v1/stacks/trial')
  }
}

async function forkOnce(url: string): Promise<void> {
  const load = startLoad(url)
  await delay(LOADED_FOR_MS)

  const acknowledged = new Set(load.acknowledged)
  const begun = performance.now()
  const fork = await call<ForkResult>('POST', '/v1/stacks/shop/fork', { into: 'trial' })
  const tookMs = Math.round(performance.now() - begun)
  console.log(
    `Forked in ${tookMs} ms, while ${load.acknowledged.size - acknowledged.size} visits were answered.`,
  )
  check(
    `memory was copied of ${Object.keys(fork.copied).join(', ')}`,
    Object.values(fork.copied).every((copied) => copied === 'memory'),
  )

  const rows = await rowsOf('trial')
  const missing = [...acknowledged].filter((row) => !rows.has(row))
  check(
    `of ${acknowledged.size} rows acknowledged before the fork its database lacks ${missing.length}`,
    missing.length === 0,
  )
  await delay(2000)
  const { failures: unanswered } = await load.stop()
  check(
    `of ${load.acknowledged.size} visits to the source ${unanswered.length} were not answered`,
    unanswered.length === 0,
  )
  for (const why of unanswered) console.log(`     ${why}`)
  check(
    'the source went on, and its copy did not',
    (await rowsOf('shop')).size > (await rowsOf('trial')).size,
  )

  const copyUrl = await publish(await unitOf('trial', 'web'))
  const own = Date.now()
  await visit(copyUrl, own)
  check('what the copy was told its source does not know', !(await rowsOf('shop')).has(own))
  check('nor the other way round', !(await rowsOf('trial')).has(Math.max(...load.acknowledged)))
  for (const [stack, at] of Object.entries({ shop: url, trial: copyUrl })) await sleepAndWake(stack, at)
}

async function sleepAndWake(stack: string, at: string): Promise<void> {
  const before = countsIn(await visit(at, Date.now()))
  // A late acknowledgement of one unit to another that sleeps already is traffic, and wakes it.
  await delay(QUIET_MS)
  const { id } = await unitOf(stack, 'web')
  await call('POST', `/v1/units/${id}/sleep`, { sleep: '10m', stack: true, now: true })
  await delay(STOPPED_AFTER_MS)
  const asleep = await eventually(async () => {
    const { units } = await call<Stack>('GET', `/v1/stacks/${stack}`)
    if (units.some(({ state, memory }) => state === 'sleeping' && memory.kept === null))
      throw new Error(`the memory of ${stack} is not saved yet`)
    return units
  }, SAVED_WITHIN_MS)
  check(
    `all of ${stack} slept, with their memory (${asleep.map(({ name, state, memory }) => `${name} ${state} ${memory.kept}`).join(', ')})`,
    asleep.every(({ state, memory }) => state === 'sleeping' && memory.kept === true),
  )
  const woken = performance.now()
  const after = countsIn(await visit(at, Date.now()))
  console.log(`${stack} woke in ${Math.round(performance.now() - woken)} ms`)
  const [counts, connections] = [(all: number[]) => all.slice(0, 3), (all: number[]) => all.slice(3)]
  check(
    `web, API and database of ${stack} count on`,
    counts(after).every((value, index) => value > (before[index] ?? 0)),
  )
  check(
    `the connections between them go on (made: ${connections(after).join(' and ')})`,
    connections(after).join() === connections(before).join(),
  )
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

type Load = { acknowledged: Set<number>; stop(): Promise<{ failures: string[] }> }

/** Visits that come one after the other from each of a few, until stopped. */
function startLoad(url: string): Load {
  const acknowledged = new Set<number>()
  let [next, isOver] = [Date.now() * 100, false]
  const failures: string[] = []
  const visitor = async () => {
    while (!isOver) {
      const row = next++
      await visit(url, row).then(
        () => acknowledged.add(row),
        (error: unknown) => failures.push(String(error)),
      )
    }
  }
  const visitors = Array.from({ length: VISITORS }, visitor)
  const stop = async () => {
    isOver = true
    await Promise.all(visitors)
    return { failures }
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

/** `web 3, api 3, rows 3, made 1, made 1` as numbers. */
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
