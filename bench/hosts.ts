// `npm run bench:hosts -- [--hosts 200] [--units 20000] [--seconds 60]`: what many hosts and units cost the process of the
// server, at rest and under a steady load of calls. The server and Postgres are real, and call the hosts by TLS as ever; their
// engines are in memory, in a process of their own. A fifth of the units run, three tenths are frozen, the others stopped.
// Ends with 1 if the server takes more than one core.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { sql } from 'kysely'
import { issueIdentity } from '../src/certificates/fleet-ca.ts'
import { systemClock } from '../src/lib/clock.ts'
import { freePort } from '../src/lib/free-port.ts'
import { Berth, makeDataDir } from '../test/support/berth.ts'
import { withDatabaseAt } from '../test/support/host-invariants.ts'
import { makeTeam, type TestTeam } from '../test/support/make.ts'
import { openOwnPostgres } from '../test/support/own-postgres.ts'
import { type Call, clientOf } from './berth.ts'
import { percentile } from './figures.ts'
import { cpuSecondsOf } from './service.ts'
import type { SimulatedHost, SimulatedUnit } from './simulated-hosts.ts'

const { values: options } = parseArgs({
  options: {
    hosts: { type: 'string', default: '200' },
    units: { type: 'string', default: '20000' },
    seconds: { type: 'string', default: '60' },
  },
})
const [hostCount, unitCount, seconds] = [options.hosts, options.units, options.seconds].map(Number) as [
  number,
  number,
  number,
]
/** Calls a second of the load. */
const LOAD = { 'create and destroy': 2, 'sleep and wake': 5, exec: 20, read: 50, list: 5 }
const READY_MS = 300_000

const HOST = '127.0.0.1'
const idOf = (kind: string, n: number) => `${kind}_${n.toString(16).padStart(32, '0')}`
/** On each host the same parts. */
function stateOf(n: number): SimulatedUnit['state'] {
  const ofHost = Math.floor(n / hostCount) % 10
  return ofHost < 2 ? 'running' : ofHost < 5 ? 'frozen' : 'stopped'
}

const postgres = await openOwnPostgres()
const data = await makeDataDir(undefined, { isEmpty: true })
const berth = new Berth(data.path)
const settings: Record<string, string> = {
  BERTH_ROLE: 'server',
  DATABASE_URL: postgres.url(),
  BERTH_LOG_LEVEL: 'warn',
}
for (const name of ['BERTH_API_ADDRESS', 'BERTH_METRICS', 'BERTH_HOSTS_ADDRESS'])
  settings[name] = `${HOST}:${await freePort(HOST)}`
await berth.start(settings)
const simulated = fork(new URL('simulated-hosts.ts', import.meta.url))
try {
  const teams = await fill()
  const calls = teams.map(({ key }) => clientOf({ baseUrl: berth.credentials.baseUrl, apiKey: key }))
  await measure('at rest', async () => await delay(seconds * 1000))
  await measure('under load', async () => await load(calls))
} finally {
  await berth.pressCtrlC()
  simulated.disconnect()
  await postgres.remove()
  await data.remove()
}

/** A team on each host, with its part of the units; resolves once the server has met all hosts. */
async function fill(): Promise<TestTeam[]> {
  const hosts: SimulatedHost[] = []
  for (let n = 1; n <= hostCount; n += 1)
    hosts.push({
      name: `host-${n}`,
      port: await freePort(HOST),
      identity: await issueIdentity(data.path, { role: 'engine', host: `host-${n}` }, new Date()),
      subnet: n % 250,
      networkGroup: n,
      units: [],
    })
  for (let n = 1; n <= unitCount; n += 1)
    hosts[n % hostCount]?.units.push({ id: idOf('unit', n), state: stateOf(n) })
  simulated.send(hosts)
  await once(simulated, 'message')
  const teams: TestTeam[] = []
  await withDatabaseAt(postgres.url(), async (db) => {
    for (const [index, { name, port, units }] of hosts.entries()) {
      const team = await makeTeam({ app: { db, clock: systemClock } })
      teams.push(team)
      const [hostId, stackId] = [idOf('host', index + 1), idOf('stack', index + 1)]
      await sql`insert into stacks (id, team_id, name, created_at) values (${stackId}, ${team.teamId}, 'one', now())`.execute(
        db,
      )
      const spec = {
        entrypoint: null,
        cmd: null,
        env: {},
        ports: [],
        databasePorts: [],
        expose: null,
        volume: null,
      }
      const stored = JSON.stringify({ ...spec, files: [], healthcheck: null })
      const [ids, states] = [units.map(({ id }) => id), units.map(({ state }) => state)]
      await sql`insert into hosts (id, name, address, state) values (${hostId}, ${name}, ${`${HOST}:${port}`}, 'ready')`.execute(
        db,
      )
      await sql`
        insert into units (id, team_id, stack_id, name, image, size, spec, isolation, network_group, host_id, held_by, state,
          frozen, generation, stopped_reason, sleep, created_at, changed_at, started_at, last_used_at, sleeps_at)
        select id, ${team.teamId}, ${stackId}, id, 'berth.local/debian:12', 'nano', ${stored}::jsonb, 'gvisor',
          (select network_group from teams where id = ${team.teamId}), ${hostId}, ${team.keyId},
          case state when 'frozen' then 'sleeping' else state end, state = 'frozen', 1,
          case state when 'running' then null when 'frozen' then 'idle' else 'user' end, '12h', now(), now(), now(), now(),
          case state when 'running' then now() + '12 hours'::interval end
        from unnest(${ids}::text[], ${states}::text[]) as given (id, state)`.execute(db)
      await sql`
        insert into meters (unit_id, kind, generation, host_id, team_id, held_by, size, price_nano_cents_per_hour,
          counted_before, started_at, billed_to)
        select id, 'compute', 1, host_id, team_id, held_by, size, 1000, 0, now(), now() from units
        where host_id = ${hostId} and state = 'running'`.execute(db)
    }
    await sql`analyze`.execute(db)
  })
  const beganMs = performance.now()
  const away = `select 1 from hosts left join heartbeats using (id) where name like 'host-%' and (heartbeats.at is null or away_since is not null)`
  while ((await postgres.ask(away)).length > 0) {
    if (performance.now() - beganMs > READY_MS)
      throw new Error(
        `the server has not met all hosts in time:\n${readFileSync(`${data.path}/logs/berth.log`, 'utf8').slice(-4000)}`,
      )
    await delay(500)
  }
  console.log(
    `${hostCount} hosts and ${unitCount} units, met after ${((performance.now() - beganMs) / 1000).toFixed(1)} s`,
  )
  return teams
}

async function measure(when: string, work: () => Promise<void>): Promise<void> {
  const server = await berth.pidOf('server')
  if (server === null) throw new Error('there is no server')
  const database = Number(
    readFileSync(
      `${new URL(postgres.url().replace(/^[^?]*/, 'x://x')).searchParams.get('host')}/.s.PGSQL.5432.lock`,
      'utf8',
    ).split('\n')[0],
  )
  const now = () => [cpuSecondsOf(server), cpuSecondsOf(database), performance.now() / 1000] as const
  const before = now()
  await work()
  const after = now()
  const tookS = after[2] - before[2]
  const [ofServer, ofDatabase] = [(after[0] - before[0]) / tookS, (after[1] - before[1]) / tookS]
  console.log(`${when}: the server takes ${percent(ofServer)} of a core, Postgres ${percent(ofDatabase)}`)
  if (ofServer > 1) process.exitCode = 1
}

/** Each kind of call at its rate, for all teams in turn; prints how long they took. */
async function load(calls: Call[]): Promise<void> {
  const took = new Map<string, number[]>()
  let failed = 0
  const pending = new Set<Promise<void>>()
  const ofTeam = (n: number, state: SimulatedUnit['state']): [Call, string] => {
    const host = n % hostCount
    let unit = host === 0 ? hostCount : host
    while (stateOf(unit) !== state && unit + hostCount <= unitCount) unit += hostCount
    return [calls[host] as Call, idOf('unit', unit)]
  }
  const work: Record<string, (n: number) => Promise<unknown>> = {
    'create and destroy': async (n) => {
      const call = calls[n % hostCount] as Call
      const spec = { name: `made-${n}`, image: 'berth.local/debian:12', size: 'nano' }
      const { units } = (await call('POST', '/v1/units', { spec })) as { units: { id: string }[] }
      await call('DELETE', `/v1/units/${units[0]?.id}`)
    },
    'sleep and wake': async (n) => {
      const [call, id] = ofTeam(n, 'frozen')
      await call('POST', `/v1/units/${id}/exec`, { cmd: ['true'] })
      await call('POST', `/v1/units/${id}/sleep`, { sleep: '12h', now: true })
    },
    exec: async (n) => {
      const [call, id] = ofTeam(n, 'running')
      await call('POST', `/v1/units/${id}/exec`, { cmd: ['true'] })
    },
    read: async (n) => {
      const [call, id] = ofTeam(n, 'running')
      await call('GET', `/v1/units/${id}`)
    },
    list: async (n) => void (await (calls[n % hostCount] as Call)('GET', '/v1/units?limit=50')),
  }
  const timers = Object.entries(LOAD).map(([what, rate]) => {
    let n = 0
    return setInterval(() => {
      n += 1
      const beganMs = performance.now()
      const one = (work[what]?.(n) ?? Promise.resolve()).then(
        () => void took.set(what, [...(took.get(what) ?? []), performance.now() - beganMs]),
        (error: unknown) => {
          if (failed++ < 5) console.log(String(error))
        },
      )
      const kept = one.finally(() => pending.delete(kept))
      pending.add(kept)
    }, 1000 / rate)
  })
  await delay(seconds * 1000)
  for (const timer of timers) clearInterval(timer)
  await Promise.all(pending)
  for (const [what, ms] of took)
    console.log(
      `  ${what}, ${LOAD[what as keyof typeof LOAD]} a second: p50 ${percentile(ms, 0.5).toFixed(1)} ms, p99 ${percentile(ms, 0.99).toFixed(1)} ms`,
    )
  console.log(`  ${failed} calls failed`)
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}
