// node bench/hosts.ts [hosts] [units]
//
// What many hosts cost the server: rounds of hello, list and reconcile, and placement of a new team. The engines are in
// memory and answer at once, so this is the server's own part; Postgres works beside it.

import { sql } from 'kysely'
import { createApp } from '../src/app.ts'
import { loadConfig } from '../src/config.ts'
import { chooseHost } from '../src/domain/hosts/place.ts'
import { reconcileMachines, recover } from '../src/domain/units/reconcile.ts'
import { watchHosts } from '../src/domain/units/watch-hosts.ts'
import { createFleet } from '../src/engine/fleet.ts'
import { systemClock } from '../src/lib/clock.ts'
import { SecretKey } from '../src/lib/crypto.ts'
import { noFailpoints } from '../src/lib/failpoints.ts'
import { silentLog } from '../src/lib/log.ts'
import { unobserved } from '../src/lib/observer.ts'
import { createPublicFetch } from '../src/lib/public-fetch.ts'
import { openDatabase } from '../src/store/db.ts'
import { makeCaller } from '../test/support/domain.ts'
import { createFakeEngine, type FakeEngine } from '../test/support/fake-engine/fake-engine.ts'
import { firstHost } from '../test/support/hosts.ts'
import { createTestDatabase, startTestPostgres } from '../test/support/postgres.ts'

const [hosts = 200, units = 20_000] = process.argv.slice(2).map(Number)
const clock = systemClock
const postgres = await startTestPostgres()
const database = await createTestDatabase(postgres.socketDir)
const db = openDatabase(database.url, silentLog)
const caller = await makeCaller({ db, clock }, {}, 'team')
const newcomer = await makeCaller({ db, clock }, {}, 'team')
const local = await firstHost(db, createFakeEngine({ clock }))
const far = new Map<string, FakeEngine>()

const idOf = (kind: string, n: number) => `${kind}_${n.toString(16).padStart(32, '0')}`
for (let n = 1; n <= hosts; n += 1)
  far.set(`host-${n}`, createFakeEngine({ clock, subnet: n, instance: `i${n}` }))
await sql`
  insert into hosts (id, name, address, state)
  select 'host_' || lpad(to_hex(n), 32, '0'), 'host-' || n, 'host-' || n, 'ready' from generate_series(1, ${hosts}) n
`.execute(db)
await sql`insert into stacks (id, team_id, name, created_at) values (${idOf('stack', 1)}, ${caller.teamId}, 'one', now())`.execute(
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
  files: [],
}
await sql`
  insert into units
    (id, team_id, stack_id, name, image, size, spec, isolation, network_group, host_id, held_by, state, generation,
     stopped_reason, sleep, created_at, changed_at)
  select 'unit_' || lpad(to_hex(n), 32, '0'), ${caller.teamId}, ${idOf('stack', 1)}, 'unit-' || n, 'node:22', 'nano',
    ${JSON.stringify({ ...spec, healthcheck: null })}::jsonb, 'gvisor',
    (select network_group from teams where id = ${caller.teamId}),
    'host_' || lpad(to_hex(n % ${hosts}::int + 1), 32, '0'), ${caller.credentialId}, 'stopped', 1, 'user', '30m', now(), now()
  from generate_series(1, ${units}) n
`.execute(db)
await sql`analyze`.execute(db)
const size = { cpus: 1, memoryMb: 256, pids: 64, diskGb: 1 }
for (const engine of far.values()) await engine.pull('berth.local/debian:12')
for (let n = 1; n <= units; n += 1) {
  const engine = far.get(`host-${(n % hosts) + 1}`)
  const { digest: imageDigest } = (await engine?.pull('berth.local/debian:12')) ?? { digest: '' }
  const id = idOf('unit', n)
  await engine?.create({ id, imageDigest, isolation: 'gvisor', size, volume: null, networkGroup: 1 })
}

const app = createApp({
  config: loadConfig({}),
  db,
  fleet: createFleet(local, ({ name }) => {
    const engine = far.get(name)
    if (!engine) throw new Error(`there is no host ${name}`)
    return { engine, cut: () => {} }
  }),
  clock,
  log: silentLog,
  secretKey: new SecretKey(Buffer.alloc(32, 7)),
  failpoints: noFailpoints,
  deliverMail: async () => {},
  observer: unobserved,
  payments: null,
  fetchPublic: createPublicFetch(),
})
await recover(app)
const hellos = async () => {
  await watchHosts(app)
  for (const { id } of app.fleet.hosts()) await app.activity.operations.find(`hello ${id}`)
}
while (app.fleet.hosts().length <= hosts || app.fleet.hosts().some(({ awaySince }) => awaySince !== null))
  await hellos()

console.log(`started after ${performance.now().toFixed(0)} ms`)
await report('hello', 2, hellos)
await report('list and reconcile', 5, async () => await reconcileMachines(app))

// In turn, so that what others do on this machine shows in both.
const [placements, plain]: [number[], number[]] = [[], []]
const placed = { teamId: newcomer.teamId, memoryMb: 256, largestVolumeGb: 0, images: ['node:22'] }
for (let n = 0; n < 2000; n += 1) {
  placements.push(await timed(async () => await chooseHost(app, placed)))
  plain.push(await timed(async () => await sql`select 1`.execute(db)))
}
console.log(`placement of a new team: ${quantiles(placements)}`)
console.log(`a statement that does nothing, in turn with it: ${quantiles(plain)}`)

await db.destroy()
await database.drop()
await postgres.stop()
process.exit(0)

/** Of a round that begins every so many seconds. */
async function report(what: string, everyS: number, round: () => Promise<void>): Promise<void> {
  const rounds = 10
  await round()
  const [before, beganMs] = [process.cpuUsage(), performance.now()]
  for (let n = 0; n < rounds; n += 1) await round()
  const { user, system } = process.cpuUsage(before)
  const cpuMs = (user + system) / 1000 / rounds
  const tookMs = (performance.now() - beganMs) / rounds
  const share = ((cpuMs / (everyS * 1000)) * 100).toFixed(1)
  console.log(
    `${what}: ${cpuMs.toFixed(0)} ms of CPU and ${tookMs.toFixed(0)} ms a round, ${share} % of a core every ${everyS} s`,
  )
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const beganMs = performance.now()
  await work()
  return performance.now() - beganMs
}

function quantiles(took: number[]): string {
  const inOrder = took.toSorted((one, other) => one - other)
  const at = (share: number) => (inOrder[Math.floor(inOrder.length * share)] ?? 0).toFixed(2)
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`
}
