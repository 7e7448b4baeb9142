// `npm run soak -- [--minutes N] [--seed N] [--owners N]`: runs a mixed load while every process is killed at
// random. The exit code says whether anything was lost, stuck or left behind.

import { parseArgs } from 'node:util'
import { soak } from '../test/soak/soak.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    owners: { type: 'string', default: '6' },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) {
  console.log('npm run soak -- [--minutes 10] [--seed N] [--owners 6]')
  process.exit(0)
}

const journal = await soak({
  seed: Number(values.seed),
  forMs: Number(values.minutes) * 60_000,
  owners: Number(values.owners),
  pauseMs: [1000, 6000],
  say: (line) => console.log(line),
})
console.log(`\n${journal.summary().join('\n')}\n`)
const verdict =
  journal.faults.length === 0
    ? 'Nothing was lost, nothing is stuck, and nothing is left on the host.'
    : `${journal.faults.length} faults; the same mixture again: npm run soak -- --minutes ${values.minutes} --seed ${values.seed}`
console.log(verdict)
process.exit(journal.faults.length === 0 ? 0 : 1)
