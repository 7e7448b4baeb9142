// `npm run bench:requests`: what the server itself does, without machines: authenticated reads of a unit a second over many
// keys, each with its audit row and counted against its rates, by one server and by two, beside a server of the same
// framework that does nothing; and how long lists take in a team with many units and a long audit log. A Postgres and
// servers of its own, the engine in memory, `wrk` as the caller. Compare the figures of one run with each other.

import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import Fastify from 'fastify'
import { createKey } from '../src/domain/credentials/keys.ts'
import { unrestrictedPolicy } from '../src/domain/credentials/unrestricted-policy.ts'
import { createAccount } from '../src/domain/accounts/create.ts'
import { silentLog } from '../src/lib/log.ts'
import { runOrThrow } from '../src/lib/process.ts'
import { openDatabase } from '../src/store/db.ts'
import { migrate } from '../src/store/migrate.ts'
import { startPostgres } from '../src/supervisor/postgres.ts'
import { type ApiProcess, startApiProcess } from '../test/support/api-process.ts'
import { percentile, timed } from './figures.ts'
import { fillTeam } from './filled-team.ts'
import { cpuSecondsOf } from './service.ts'

const CONNECTIONS = 256
const LIST_ROUNDS = 60

const secretKey = randomBytes(32).toString('hex')
const settings = { BERTH_RATE_REQUESTS: '1000000' }

const { values: options } = parseArgs({
  options: {
    keys: { type: 'string', default: '500' },
    seconds: { type: 'string', default: '10' },
    units: { type: 'string', default: '10000' },
    audit: { type: 'string', default: '1000000' },
    profile: { type: 'string', default: '' },
    help: { type: 'boolean', default: false },
  },
})

if (options.help) {
  console.log(
    `npm run bench:requests -- [--keys 500] [--seconds 10] [--units 10000] [--audit 1000000] [--profile DIR]

--profile DIR  writes a profile of the server's processor time there (*.cpuprofile)`,
  )
} else {
  await runBenchmark()
}

async function runBenchmark(): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  await chmod(dir, 0o711)
  const postgres = await startPostgres({ dataDir: dir, socketDir: join(dir, 'socket'), log: silentLog })
  const databaseUrl = postgres.url('berth')
  const db = openDatabase(databaseUrl, silentLog)
  const servers: ApiProcess[] = []
  const start = async (nodeOptions: string[] = []) => {
    const input = { databaseUrl, settings, secretKey }
    const server = await startApiProcess(input, nodeOptions)
    servers.push(server)
    return server
  }
  try {
    await migrate(db)
    const owner = await makeOwner()
    const policy = unrestrictedPolicy
    const keys = await Promise.all(
      Array.from({ length: Number(options.keys) }, (_, n) =>
        createKey(db, {
          teamId: owner.teamId,
          name: `key ${n}`,
          policy,
          createdBy: owner.userId,
          createdAt: new Date(),
        }),
      ),
    )
    console.log('filling a team')
    const unitIds = await fillTeam(db, {
      teamId: owner.teamId,
      units: Number(options.units),
      audit: Number(options.audit),
      keyIds: keys.map(({ id }) => id),
    })
    const profile = options.profile === '' ? [] : ['--cpu-prof', `--cpu-prof-dir=${options.profile}`]
    const one = await start(profile)
    const script = await writeScript(dir, keys, unitIds)
    const database = Number(
      (await readFile(join(dir, 'postgres', 'data', 'postmaster.pid'), 'utf8')).split('\n')[0],
    )
    const cpuOf = (...pids: number[]) => pids.reduce((sum, pid) => sum + cpuSecondsOf(pid), 0)
    console.log(`framework alone:  ${said(await measureEmpty())}`)
    const before = [cpuOf(one.pid), cpuOf(database)]
    const alone = await load(one.baseUrl, script)
    const used = [cpuOf(one.pid), cpuOf(database)].map((seconds, which) => {
      return `${(((seconds - (before[which] ?? 0)) * 1e6) / alone.requests).toFixed(0)} µs`
    })
    console.log(
      `one server:       ${said(alone)}; processor time ${used[0]} of the server, ${used[1]} of Postgres a request`,
    )
    const [key] = keys
    if (key) console.log(await measureLists(one.baseUrl, key))
    const two = await start()
    const both = await Promise.all([load(one.baseUrl, script), load(two.baseUrl, script)])
    console.log(`two servers:      ${both.map(said).join(' and ')}`)
  } finally {
    for (const server of servers) await server.stop()
    await db.destroy()
    await postgres.stop()
    await rm(dir, { recursive: true, force: true })
  }

  async function makeOwner(): Promise<{ userId: string; teamId: string }> {
    return await createAccount(db, {
      email: 'bench@example.test',
      name: 'Bench',
      admin: false,
      plan: 'team',
      paysAsItGoes: true,
      freeCreditsCents: 0,
      createdAt: new Date(),
    })
  }
}

/** What `wrk` sends: reads of all units in turn, by all keys in turn. */
async function writeScript(dir: string, keys: { secret: string }[], unitIds: string[]): Promise<string> {
  const path = join(dir, 'requests.lua')
  const list = (items: string[]) => `{${items.map((item) => `"${item}"`).join(',')}}`
  await writeFile(
    path,
    `local keys, units, n = ${list(keys.map(({ secret }) => secret))}, ${list(unitIds.slice(0, 1000))}, 0
request = function()
  n = n + 1
  local headers = { Authorization = "Bearer " .. keys[n % #keys + 1] }
  return wrk.format("GET", "/v1/units/" .. units[n % #units + 1], headers)
end`,
  )
  return path
}

type Load = { requests: number; rate: string; p50: string; p99: string; failed: string | null }

async function load(baseUrl: string, script: string | null): Promise<Load> {
  const args = ['-t1', `-c${CONNECTIONS}`, `-d${options.seconds}s`, '--latency']
  const text = await runOrThrow('wrk', [...args, ...(script ? ['-s', script] : []), baseUrl], {
    timeoutMs: 10 * 60_000,
  })
  return {
    requests: Number(/(\d+) requests in/.exec(text)?.[1]),
    rate: /Requests\/sec:\s+(\d+)/.exec(text)?.[1] ?? '?',
    p50: /^\s+50%\s+(\S+)/m.exec(text)?.[1] ?? '?',
    p99: /^\s+99%\s+(\S+)/m.exec(text)?.[1] ?? '?',
    failed: /Non-2xx or 3xx responses: (\d+)/.exec(text)?.[1] ?? null,
  }
}

function said({ rate, p50, p99, failed }: Load): string {
  return `${rate}/s, p50 ${p50}, p99 ${p99}${failed === null ? '' : `, ${failed} failed`}`
}

/** The framework in this process, with an answer of one line. */
async function measureEmpty(): Promise<Load> {
  const server = Fastify({ logger: false })
  server.get('/', () => ({ hello: 'world' }))
  const baseUrl = await server.listen({ host: '127.0.0.1', port: 0 })
  try {
    return await load(baseUrl, null)
  } finally {
    await server.close()
  }
}

async function measureLists(baseUrl: string, key: { id: string; secret: string }): Promise<string> {
  const paths = {
    'units, 500': '/v1/units?limit=500',
    'units of a stack': '/v1/units?stack=stack-7',
    'units, destroyed too': '/v1/units?all=true',
    stacks: '/v1/stacks',
    audit: '/v1/audit',
    'audit, 500': '/v1/audit?limit=500',
    'audit of a key': `/v1/audit?key=${key.id}`,
    'audit of an agent': '/v1/audit?agent=claude-code',
    'audit of a rare agent': '/v1/audit?agent=rare',
    'audit of a key and an agent': `/v1/audit?key=${key.id}&agent=claude-code`,
    'audit of a key and a rare agent': `/v1/audit?key=${key.id}&agent=rare`,
    'audit of nobody': '/v1/audit?key=nobody',
  }
  const rows = []
  for (const [name, path] of Object.entries(paths)) {
    const samples: number[] = []
    for (let round = 0; round < LIST_ROUNDS; round += 1) {
      await timed(samples, async () => {
        const headers = { authorization: `Bearer ${key.secret}` }
        const response = await fetch(baseUrl + path, { headers })
        await response.arrayBuffer()
        if (!response.ok) throw new Error(`${path} answered ${response.status}`)
      })
    }
    const [p50, p99] = [0.5, 0.99].map((share) => percentile(samples, share).toFixed(1))
    rows.push(`| ${name} | ${p50} | ${p99} |`)
  }
  return ['', '| list | p50 ms | p99 ms |', '|---|---|---|', ...rows, ''].join('\n')
}
