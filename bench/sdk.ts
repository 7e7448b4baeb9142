// `npm run bench:sdk`: what a call by the SDK costs over the same call by bare fetch, in turn, to one server with a Postgres
// of its own and the engine in memory; how large the SDK is; and what the start of the CLI costs over Node's own. Compare the figures of one run with each other.

import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
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
  await measureOwnPart()
  await measureBundle()
  await measureStarts()
} finally {
  await stop()
}

/** The SDK over a fetch that answers at once, less that fetch: no server and no network are in it. */
async function measureOwnPart(): Promise<void> {
  const text = JSON.stringify(await bare(`/v1/units?limit=${UNITS}`))
  const answer = async () => new Response(text, { headers: { 'content-type': 'application/json' } })
  const own = new Berth({ url: server.baseUrl, apiKey: key.secret, fetch: answer })
  const [bySdk, byFetch]: [number[], number[]] = [[], []]
  for (let round = 0; round < WARM_UP + ROUNDS; round += 1) {
    await timed(round < WARM_UP ? [] : bySdk, async () => await own.units.list({ limit: UNITS }).page())
    await timed(round < WARM_UP ? [] : byFetch, async () => await (await answer()).json())
  }
  const [p50, p99] = [0.5, 0.99].map((share) => percentile(bySdk, share) - percentile(byFetch, share))
  console.log(`the SDK's own part of a call: p50 ${p50?.toFixed(3)} ms, p99 ${p99?.toFixed(3)} ms`)
}

async function measureBundle(): Promise<void> {
  const bundle = await rolldown({
    input: fileURLToPath(new URL('../packages/sdk/src/index.ts', import.meta.url)),
  })
  const { output } = await bundle.generate({ format: 'esm', minify: true })
  await bundle.close()
  console.log(
    `the SDK as one file: ${(gzipSync(output[0].code, { level: 9 }).length / 1000).toFixed(1)} kB gzipped`,
  )
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
