// `npm run bench:sdk`: what a call by the SDK costs over the same call by bare fetch, in turn, to one server with a Postgres
// of its own and the engine in memory; and what the start of the CLI costs over Node's own. Compare the figures of one run with each other.

import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Berth } from '../packages/sdk/src/index.ts'
import { buildCli } from '../test/support/clients.ts'
import { startScratchService } from '../test/support/scratch-service.ts'
import { percentile, timed } from './figures.ts'
import { fillTeam } from './filled-team.ts'

const ROUNDS = 1000
const WARM_UP = 200
const UNITS = 20
const STARTS = 40

const run = promisify(execFile)

const { db, teamId, key, server, stop } = await startScratchService('bench')
await fillTeam(db, { teamId, units: UNITS, audit: 0, keyIds: [key.id] })
const berth = new Berth({ url: server.baseUrl, apiKey: key.secret })
const headers = { authorization: `Bearer ${key.secret}`, accept: 'application/json' }
const bare = async (path: string) => await (await fetch(server.baseUrl + path, { headers })).json()

const asks: Record<string, () => Promise<unknown>> = {
  'quota, fetch': async () => await bare('/v1/quota'),
  'quota, SDK': async () => await berth.quota(),
  'units, fetch': async () => await bare(`/v1/units?limit=${UNITS}`),
  'units, SDK': async () => await berth.units.list({ limit: UNITS }).page(),
}
try {
  const samples = Object.fromEntries(Object.keys(asks).map((name): [string, number[]] => [name, []]))
  const cpu = Object.fromEntries(Object.keys(asks).map((name) => [name, 0]))
  for (let round = 0; round < WARM_UP + ROUNDS; round += 1) {
    for (const [name, ask] of Object.entries(asks)) {
      const before = process.cpuUsage()
      await timed(round < WARM_UP ? [] : (samples[name] ?? []), ask)
      const { user, system } = process.cpuUsage(before)
      if (round >= WARM_UP) cpu[name] = (cpu[name] ?? 0) + (user + system) / 1000
    }
  }
  for (const [name, values] of Object.entries(samples)) {
    const waits = `p50 ${percentile(values, 0.5).toFixed(2)} ms, p99 ${percentile(values, 0.99).toFixed(2)} ms`
    // On a busy machine it says more than what a caller waited.
    const own = ((cpu[name] ?? 0) / ROUNDS).toFixed(2)
    console.log(`${name.padEnd(14)} ${waits}, processor time of this process ${own} ms`)
  }
  await measureStarts()
} finally {
  await stop()
}

/** The least of many: what others do on the machine only adds to it. */
async function measureStarts(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  const program = await buildCli(directory)
  const env = { PATH: '/usr/bin:/bin', BERTH_URL: server.baseUrl, BERTH_API_KEY: key.secret, HOME: directory }
  const starts = {
    'node -e 0': ['-e', '0'],
    'berth --help': [program, '--help'],
    'berth ls': [program, 'ls'],
  }
  for (const [name, args] of Object.entries(starts)) {
    const waits: number[] = []
    for (let round = 0; round < STARTS; round += 1) {
      await timed(waits, async () => await run(process.execPath, args, { env }))
    }
    const [least, p50] = [Math.min(...waits), percentile(waits, 0.5)]
    console.log(`${name.padEnd(14)} least ${least.toFixed(0)} ms, p50 ${p50.toFixed(0)} ms`)
  }
  await rm(directory, { recursive: true })
}
