// `npm run bill-hour -- [--minutes 60] [--seed N]`: runs a temporary Berth for an hour. Its units run, sleep, wake, stop, fork
// and are destroyed, while the server, the engine, Postgres and all of Berth are killed. The script compares the bill of each
// interval with a stopwatch that reads the list of units ten times a second.
//
// "Within a second" is of each interval of each unit: of a machine from when its unit was seen to run until it was seen to
// run no longer, of a volume from when its unit was there until it went (decisions/money.md). Where the looks leave more
// than two seconds of room, since no process was there to answer them, what was billed must lie within that. A machine that
// is found dead may have been billed up to one heartbeat less than it ran, never more. All that says what things cost, from
// `costCentsSoFar` to the balance, must agree with the meters' times and the price list to the nano-cent, and no cost that
// was shown may fall.
//
// Ctrl-C ends it sooner, with the same comparison. It leaves nothing on the host.

import { parseArgs } from 'node:util'
import { runHour } from '../test/hour/hour.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) {
  console.log('npm run bill-hour -- [--minutes 60] [--seed N]')
  process.exit(0)
}

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort())

const { journal, verdict } = await runHour({
  seed: Number(values.seed),
  forMs: Number(values.minutes) * 60_000,
  stop: stop.signal,
  say: (line) => console.log(line),
})
console.log(`\n${journal.summary().join('\n')}\n\n${verdict.table.join('\n')}\n`)
const faults = [...journal.faults, ...verdict.faults]
for (const fault of verdict.faults) console.log(`FAULT: ${fault}`)
console.log(
  faults.length === 0
    ? 'Everything was billed for as long as it ran.'
    : `${faults.length} faults; the same again: npm run bill-hour -- --minutes ${values.minutes} --seed ${values.seed}`,
)
process.exit(faults.length === 0 ? 0 : 1)
