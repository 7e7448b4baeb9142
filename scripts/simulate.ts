// npm run simulate -- [--schedules 1000] [--seed 1] [--only 0,3,4] [--jumps] [--hosts] [--beside 3]
// npm run simulate -- --month [--units 1000] [--days 30] [--seed 1]
//
// With `--hosts`, two more hosts that are cut off, boot, are swapped or given up. With `--month`, what a month of so many units cost, against a reference.
//
// Simulates as many schedules, each with a seed of its own, a few beside each other: Postgres and this
// process then keep two cores busy. With `--seed` and without a number it replays that one.

import { parseArgs } from 'node:util'
import { startTestPostgres } from '../test/support/postgres.ts'
import { createBench } from '../test/simulation/bench.ts'
import { explore } from '../test/simulation/explore.ts'
import { simulateMonth } from '../test/simulation/month/month.ts'

const { values } = parseArgs({
  options: {
    schedules: { type: 'string' },
    seed: { type: 'string' },
    only: { type: 'string' },
    jumps: { type: 'boolean', default: false },
    hosts: { type: 'boolean', default: false },
    beside: { type: 'string', default: '3' },
    month: { type: 'boolean', default: false },
    units: { type: 'string', default: '1000' },
    days: { type: 'string', default: '30' },
  },
})
const only = values.only === undefined ? null : values.only.split(',').map(Number)
const first = values.seed === undefined ? Date.now() % 1_000_000_000 : Number(values.seed)
const count = Number(values.schedules ?? (values.seed === undefined ? 1000 : 1))
/** Enough to see what is wrong. */
const MAX_FAILURES = 3

const startedMs = performance.now()
const postgres = await startTestPostgres()
if (values.month) process.exit(await simulateOneMonth())
const benches = await Promise.all(
  Array.from({ length: Math.min(count, Number(values.beside)) }, () => createBench(postgres.socketDir)),
)
let begun = 0
let done = 0
const failures: string[] = []
await Promise.all(
  benches.map(async (bench) => {
    while (begun < count && failures.length < MAX_FAILURES) {
      const failure = await explore(bench, {
        seed: first + begun++,
        withJumps: values.jumps,
        hasHosts: values.hosts,
        only,
      })
      done += 1
      if (failure !== null) failures.push(failure)
      if (failure !== null) console.log(`${failure}\n`)
      else if (done % 100 === 0) console.log(`${done} schedules, ${seconds()} s`)
    }
    await bench.close()
  }),
)
await postgres.stop()
console.log(`${done} schedules from seed ${first} on, ${failures.length} failed, ${seconds()} s`)
// What a simulated server that died was waiting for it waits for still.
process.exit(failures.length === 0 ? 0 : 1)

/** Answers the exit code. */
async function simulateOneMonth(): Promise<number> {
  const { faults, figures } = await simulateMonth({
    seed: first,
    units: Number(values.units),
    days: Number(values.days),
    stepsPerDay: 30,
    actsPerStep: Math.ceil(Number(values.units) / 50),
    withJumps: values.jumps,
    socketDir: postgres.socketDir,
    say: (line) => console.log(`${seconds()} s  ${line}`),
  })
  await postgres.stop()
  for (const [what, figure] of Object.entries(figures)) console.log(`${String(figure).padStart(16)}  ${what}`)
  for (const fault of faults) console.log(`FAULT: ${fault}`)
  console.log(`The month of seed ${first} had ${faults.length} faults, ${seconds()} s`)
  return faults.length === 0 ? 0 : 1
}

function seconds(): string {
  return ((performance.now() - startedMs) / 1000).toFixed(1)
}
