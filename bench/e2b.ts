// `npm run bench:e2b`: what the unchanged client of E2B costs over the same by REST, in turn, on a temporary Berth: a command, and
// a create with its first command, by a URL and by a domain with TLS. Compare the figures of one run with each other.

import { execFile } from 'node:child_process'
import { loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { Sandbox } from 'e2b'
import { type Call, clientOf, destroyAll } from './berth.ts'
import { percentile, timed } from './figures.ts'
import { type Berth, startBerth } from './service.ts'

/** Of the acceptance: by the client over by REST, medians of one run. */
const GOALS = { command: 1.3, create: 1.2 }
const WARM_UP = 3

const { values: options } = parseArgs({
  options: {
    class: { type: 'string', default: 'gvisor' },
    commands: { type: 'string', default: '60' },
    creates: { type: 'string', default: '15' },
  },
})

// Node reads the authority that it trusts when it starts: what measures is a process of its own.
const MEASURED = 'BERTH_BENCH_E2B'
if (process.env[MEASURED] === undefined) {
  const berth = await startBerth(options.class, {})
  try {
    await measureApart(berth)
  } finally {
    // Units outlive Berth, and a measurement that failed leaves its own.
    await destroyAll(clientOf(berth)).catch(() => {})
    await berth.stop()
  }
} else await measure(JSON.parse(process.env[MEASURED]) as Reached)

type Reached = Pick<Berth, 'baseUrl' | 'apiKey' | 'gatewayTls'>

async function measureApart({ baseUrl, apiKey, gatewayTls, caFile }: Berth): Promise<void> {
  const program = fileURLToPath(import.meta.url)
  const measuring = promisify(execFile)(process.execPath, [program, ...process.argv.slice(2)], {
    env: {
      PATH: process.env['PATH'],
      NODE_EXTRA_CA_CERTS: caFile,
      E2B_VALIDATE_API_KEY: 'false',
      [MEASURED]: JSON.stringify({ baseUrl, apiKey, gatewayTls }),
    },
  })
  measuring.child.stdout?.pipe(process.stdout)
  measuring.child.stderr?.pipe(process.stderr)
  await measuring
}

async function measure({ baseUrl, apiKey, gatewayTls }: Reached): Promise<void> {
  const call = clientOf({ baseUrl, apiKey })
  const port = gatewayTls.split(':').at(-1)
  const ways = {
    'by E2B_API_URL': { apiKey, apiUrl: `${baseUrl}/e2b`, sandboxUrl: `${baseUrl}/e2b/sandbox` },
    'by E2B_DOMAIN': { apiKey, domain: `berth.localhost:${port}` },
  }
  await call('DELETE', `/v1/units/${await createByRest(call)}`)
  console.log(`class ${options.class}, load ${loadavg()[0]?.toFixed(1)} at the beginning; medians, in turn`)
  await measureCommands(call, ways, Number(options.commands))
  await measureCreates(call, ways, Number(options.creates))
  console.log(`load ${loadavg()[0]?.toFixed(1)} at the end`)
}

type Ways = Record<string, { apiKey: string }>

/** The client runs a login shell as the sandbox's user, and so does the call beside it. */
function shell(command: string): object {
  return { cmd: ['/bin/bash', '-l', '-c', command], user: 'user' }
}

async function measureCommands(call: Call, ways: Ways, rounds: number): Promise<void> {
  const id = await createByRest(call)
  const sandboxId = id.slice('unit_'.length)
  const bySdk = await Promise.all(
    Object.entries(ways).map(async ([way, connection]) => {
      const sandbox = await Sandbox.connect(sandboxId, connection)
      return [way, async () => void (await sandbox.commands.run('echo hi'))] as const
    }),
  )
  const byRest = async () => void (await call('POST', `/v1/units/${id}/exec`, shell('echo hi')))
  report("commands.run('echo hi')", await takeTurns(rounds, byRest, bySdk), GOALS.command)
  await call('DELETE', `/v1/units/${id}`)
}

async function measureCreates(call: Call, ways: Ways, rounds: number): Promise<void> {
  const made: string[] = []
  const byRest = async () => {
    const id = await createByRest(call)
    await call('POST', `/v1/units/${id}/exec`, shell('echo hi'))
    made.push(id)
  }
  const bySdk = Object.entries(ways).map(([way, connection]) => {
    const create = async () => {
      const sandbox = await Sandbox.create(connection)
      await sandbox.commands.run('echo hi')
      made.push(`unit_${sandbox.sandboxId}`)
    }
    return [way, create] as const
  })
  const endAll = async () => {
    for (const id of made.splice(0)) await call('DELETE', `/v1/units/${id}`)
  }
  const samples = await takeTurns(rounds, byRest, bySdk, endAll)
  report('Sandbox.create() to the first command answered', samples, GOALS.create)
}

type Samples = { byRest: number[]; bySdk: Map<string, number[]> }

/** Who begins changes with each round. The first rounds do not count. */
async function takeTurns(
  rounds: number,
  byRest: () => Promise<void>,
  bySdk: readonly (readonly [string, () => Promise<void>])[],
  afterEach: () => Promise<void> = async () => {},
): Promise<Samples> {
  const samples: Samples = { byRest: [], bySdk: new Map(bySdk.map(([way]) => [way, []])) }
  for (let round = -WARM_UP; round < rounds; round += 1) {
    const sides = [
      async () => await timed(round < 0 ? [] : samples.byRest, byRest),
      ...bySdk.map(
        ([way, act]) =>
          async () =>
            await timed(round < 0 ? [] : (samples.bySdk.get(way) ?? []), act),
      ),
    ]
    const first = (round + WARM_UP) % sides.length
    for (const side of [...sides.slice(first), ...sides.slice(0, first)]) {
      await side()
      await afterEach()
    }
  }
  return samples
}

function report(what: string, { byRest, bySdk }: Samples, goal: number): void {
  const rest = percentile(byRest, 0.5)
  console.log(`${what}: by REST ${rest.toFixed(1)} ms`)
  for (const [way, samples] of bySdk) {
    const median = percentile(samples, 0.5)
    const ratio = median / rest
    const verdict = ratio <= goal ? 'met' : 'missed'
    console.log(`  ${way}: ${median.toFixed(1)} ms, ${ratio.toFixed(2)} times; goal ${goal}: ${verdict}`)
  }
}

/** As the door makes a unit of a sandbox. */
async function createByRest(call: Call): Promise<string> {
  const name = `bench-${crypto.randomUUID().slice(0, 8)}`
  const spec = { name, image: 'berth.local/base:latest', sleep: 'never' }
  const body = { stack: 'sandboxes', spec, waitTimeoutMs: 300_000 }
  const { units } = (await call('POST', '/v1/units', body)) as { units: { id: string; state: string }[] }
  const [unit = { id: '', state: '' }] = units
  // The first one may build the image.
  for (let { state } = unit; state !== 'running'; await delay(1000)) {
    if (state === 'error' || state === '') throw new Error('The unit could not be made.')
    ;({ state } = (await call('GET', `/v1/units/${unit.id}`)) as { state: string })
  }
  return unit.id
}
