// `npm run bench`: what a caller waits for, through the API of a Berth started for the purpose, in each
// isolation class, and beside it the same asked of Docker where Docker is installed. Prints a table and
// writes bench-results.json. Figures of one run belong together: compare columns, not runs.

import { writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { measureBerth } from './berth.ts'
import { measureDocker } from './docker.ts'
import { formatTable, type Results } from './figures.ts'
import { memoryOf, startBerth } from './service.ts'

/** The gateway is up a moment after the API; idle is what is asked about. */
const SETTLE_MS = 5000

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '30' },
    classes: { type: 'string', default: 'runc,gvisor' },
    json: { type: 'string', default: 'bench-results.json' },
    help: { type: 'boolean', default: false },
  },
})

if (options.help) {
  console.log(`npm run bench -- [--rounds 30] [--classes runc,gvisor] [--json bench-results.json]

Measures create to running, first and later execs, destroy and ten creates at once, through the API.`)
} else {
  const rounds = Number(options.rounds)
  const results: Results[] = []
  const memory: Record<string, string> = {}
  for (const isolation of options.classes.split(',')) {
    console.log(`Berth, class ${isolation}: starting`)
    const berth = await startBerth(isolation)
    try {
      await delay(SETTLE_MS)
      memory[isolation] = memoryOf(berth.pid)
      results.push({ column: `berth ${isolation}`, figures: await measureBerth(berth, rounds) })
      if (results.length === 1) {
        const docker = await measureDocker(berth.rootfs(), rounds)
        if (docker) results.push({ column: 'docker', figures: docker })
        else console.log('Docker is not installed here (Debian: docker.io): no peer in this run.')
      }
    } finally {
      await berth.stop()
    }
  }
  console.log(`\n${formatTable(results)}\n`)
  for (const [isolation, text] of Object.entries(memory)) console.log(`Idle memory, ${isolation}: ${text}`)
  await writeFile(options.json, `${JSON.stringify({ at: new Date(), rounds, results, memory }, null, 2)}\n`)
  console.log(`Written to ${options.json}.`)
}
