// `npm run bench`: measures a caller's latency through the API of a temporary Berth, in each
// isolation class, and the same steps with Docker if Docker is installed. Prints a table and
// writes bench-results.json. Compare the columns of one run, not the figures of different runs.

import { writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { actionsOf, type Call, clientOf, destroyAll, measureBerth } from './berth.ts'
import { measureCheckpoints } from './checkpoints.ts'
import { measureCode } from './code.ts'
import { measureByHand } from './by-hand.ts'
import {
  measureDocker,
  measureDockerCheckpoint,
  measureDockerForks,
  measureFirstCommandsInDocker,
} from './docker.ts'
import { type Figures, formatTable, type Results } from './figures.ts'
import { measureFirstCommands } from './first-command.ts'
import { disks, measureDiskForks, measureForks, measureMemoryForks } from './forks.ts'
import { measureFirstByte, measureGateway, measureWebSockets, missingTools } from './gateway.ts'
import { measureSpaced } from './ready.ts'
import { measureRecipes } from './recipes.ts'
import { type Berth, memoryOf, startBerth } from './service.ts'
import { measureDue, measureHibernation, measureIdleCost, measureWakes } from './sleep.ts'

/** The gateway is up a moment after the API; idle is what is asked about. */
const SETTLE_MS = 5000

/** Berth with no CRIU that works. */
const withoutMemory: Record<string, string> = { BERTH_CRIU: '/bin/false' }

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '30' },
    classes: { type: 'string', default: 'runc,gvisor' },
    only: {
      type: 'string',
      default: 'life,ready,first,code,wakes,idle,due,memory,forks,recipes,visits,gateway',
    },
    json: { type: 'string', default: 'bench-results.json' },
    help: { type: 'boolean', default: false },
  },
})

if (options.help) {
  console.log(`npm run bench -- [--rounds 30] [--classes runc,gvisor] [--only life,ready,first,code,wakes,idle,due,memory,forks,recipes,visits,gateway] [--json bench-results.json]

life     create to running, first and later execs, destroy and ten creates at once, beside Docker and the runtimes by hand
ready    create to running and to the first command's answer, where a machine is ready and where none is made ahead
first    from create to the first command's answer, a hundred in a row and a hundred begun within a second, beside Docker
code     create to the first code's answer, beside the first command of the same image, and later code beside the interpreter alone
wakes    a call that wakes its unit, beside the same call to a running one, in both tiers of sleep
idle     processor time with 100 units asleep
due      how soon 500 units that are due are asleep (runc only)
memory   copies of a unit with 1 and 100 MB of memory, and its sleep and wake, beside the runtime by hand
forks    copies of a unit by the size of its disk, ten at once, and of a stack, beside Docker's commit and run
recipes  what a recipe makes, until it is ready
visits   a visit that wakes its unit, beside one to a running unit
gateway  what the gateway costs, beside nginx and Caddy, and memory of idle WebSockets (runc only)`)
} else {
  await runBenchmarks(options.classes.split(','), new Set(options.only.split(',')), Number(options.rounds))
}

async function runBenchmarks(classes: string[], only: Set<string>, rounds: number): Promise<void> {
  const results: Results[] = []
  const notes: string[] = []
  for (const isolation of classes) {
    await withBerth(isolation, {}, async (berth) => {
      const call = clientOf(berth)
      if (only.has('life')) {
        notes.push(`Idle memory, ${isolation}: ${memoryOf(berth.pid)}`)
        results.push({ column: `berth ${isolation}`, figures: await measureBerth(call, rounds) })
        if (isolation === classes[0]) results.push(...(await measurePeer(berth, rounds)))
        const byHand = await measureByHand(isolation, berth.rootfs(), rounds)
        results.push({ column: `${isolation} by hand`, figures: byHand })
      }
      if (only.has('first')) {
        notes.push(await measureFirstCommands(isolation, actionsOf(call)))
        if (isolation === classes[0]) notes.push((await measureFirstCommandsInDocker(berth.rootfs())) ?? '')
      }
      if (only.has('wakes')) {
        results.push({ column: `${isolation}, frozen`, figures: await measureWakes(call, 'frozen', rounds) })
      }
      if (only.has('idle')) notes.push(`${isolation}: ${await measureIdleCost(call, berth.pid)}`)
      if (only.has('memory')) {
        const figures = await measureCheckpoints(isolation, berth.rootfs(), rounds)
        results.push({ column: `${isolation} by hand`, figures })
        results.push({ column: `forks, ${isolation}`, figures: await measureMemoryForks(call, rounds) })
      }
      if (only.has('forks')) {
        results.push({ column: `forks, ${isolation}`, figures: await measureForks(call, rounds) })
        if (isolation === classes[0]) results.push(...(await measurePeerForks(berth, rounds)))
      }
      if (only.has('recipes')) {
        const figures = await measureRecipes(call, Math.ceil(rounds / 3))
        results.push({ column: `recipes, ${isolation}`, figures })
      }
      if (only.has('visits')) {
        const figures = await measureFirstByte(berth, call, rounds)
        results.push({ column: `visits, ${isolation}`, figures })
      }
      if (only.has('gateway') && isolation === 'runc') notes.push(...(await measureVisits(berth, call)))
      if (only.has('due') && isolation === 'runc') notes.push(`${isolation}: ${await measureDue(call)}`)
    })
    if (only.has('ready')) results.push(...(await measureReady(isolation, rounds)))
    if (only.has('memory'))
      await withBerth(isolation, { BERTH_FROZEN_FOR: '0s' }, async (berth) => {
        const figures = await measureHibernation(clientOf(berth), rounds)
        results.push({ column: `sleeps, ${isolation}`, figures })
      })
    if (only.has('code'))
      await withBerth(isolation, { BERTH_READY_MACHINES: '1' }, async (berth) => {
        const figures = await measureCode(clientOf(berth), Math.ceil(rounds / 3))
        results.push({ column: `code, ${isolation}`, figures })
      })
    if (only.has('wakes')) results.push(...(await measureStopped(isolation, rounds)))
    if (only.has('forks') && isolation === 'runc') results.push(...(await measureDisksAlone(rounds)))
  }
  console.log(`\n${formatTable(results)}\n`)
  for (const note of notes) console.log(note)
  await writeFile(options.json, `${JSON.stringify({ at: new Date(), rounds, results, notes }, null, 2)}\n`)
  console.log(`Written to ${options.json}.`)
}

async function measureReady(isolation: string, rounds: number): Promise<Results[]> {
  const results: Results[] = []
  for (const [column, BERTH_READY_MACHINES] of [
    [`${isolation}, ready`, '1'],
    [`${isolation}, cold`, '0'],
  ] as const)
    await withBerth(isolation, { BERTH_READY_MACHINES }, async (berth) => {
      results.push({ column, figures: await measureSpaced(rounds, actionsOf(clientOf(berth))) })
    })
  return results
}

/** Of units that start from their disks and, where a class has that, of those that go on with their memory. */
async function measureStopped(isolation: string, rounds: number): Promise<Results[]> {
  const tiers = [{ column: `${isolation}, stopped`, settings: withoutMemory }]
  const memoryKept = 'runc, memory kept'
  if (isolation === 'runc') tiers.push({ column: memoryKept, settings: {} })
  const results: Results[] = []
  for (const { column, settings } of tiers) {
    await withBerth(isolation, { BERTH_FROZEN_FOR: '0s', ...settings }, async (berth) => {
      results.push({ column, figures: await measureWakes(clientOf(berth), 'cold', rounds) })
      if (column !== memoryKept) return
      results.push(...peerOf(await measureDockerCheckpoint(berth.rootfs(), rounds), 'docker checkpoint'))
    })
  }
  return results
}

/** What a fork of a disk takes where nothing is copied beside it. */
async function measureDisksAlone(rounds: number): Promise<Results[]> {
  const results: Results[] = []
  await withBerth('runc', withoutMemory, async (berth) => {
    const figures = await measureDiskForks(clientOf(berth), rounds)
    results.push({ column: 'forks, runc, disks alone', figures })
  })
  return results
}

async function measureVisits(berth: Berth, call: Call): Promise<string[]> {
  // Before the load: what that leaves free would hide what they take.
  const webSockets = await measureWebSockets(berth, call)
  const missing = await missingTools()
  return [missing ?? `\n${await measureGateway(berth, call)}\n`, webSockets]
}

async function withBerth(
  isolation: string,
  settings: Record<string, string>,
  work: (berth: Berth) => Promise<void>,
): Promise<void> {
  console.log(`Berth, class ${isolation}: starting`)
  const berth = await startBerth(isolation, settings)
  try {
    await delay(SETTLE_MS)
    await work(berth)
  } finally {
    // Units outlive Berth, and a measurement that failed leaves its own.
    await destroyAll(clientOf(berth)).catch(() => {})
    await berth.stop()
  }
}

async function measurePeer(berth: Berth, rounds: number): Promise<Results[]> {
  return peerOf(await measureDocker(berth.rootfs(), rounds))
}

async function measurePeerForks(berth: Berth, rounds: number): Promise<Results[]> {
  // It reads and writes all of a disk each time: large ones are not asked for often.
  const asked = disks.map((disk) => ({ ...disk, rounds: disk.megabytes > 1000 ? 3 : rounds }))
  return peerOf(await measureDockerForks(berth.rootfs(), asked))
}

function peerOf(docker: Figures | null, column = 'docker'): Results[] {
  if (docker) return [{ column, figures: docker }]
  console.log(`${column}: not measured, since Docker (Debian: docker.io) or a part of it is not there.`)
  return []
}
