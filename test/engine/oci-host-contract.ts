// The real engine with real runtimes against the whole contract. Each isolation class has its own test file
// (oci-runc.host.test.ts, oci-gvisor.host.test.ts), so that they run in parallel. `npm test` runs each group of claims in one
// of the classes, and in the other class the next day; the groups that take turns rest for two days after two
// (decisions/tests.md).

import type { IsolationClass } from '../../src/engine/engine.ts'
import { deriveImage } from '../support/derived-images.ts'
import { isDeep, testSeed } from '../support/part-of.ts'
import { driverDefaults, type GvisorCommands } from '../../src/engine/oci/runtime/driver.ts'
import { type ClaimGroup, claimGroups, describeClaims, describeEngineContract } from './contract.ts'
import { IMAGE, IMAGES_DIR, openHostEngine } from './host-engine.ts'
import { configuredImage, type OpenedEngine } from './suite.ts'

const configured = { reference: 'berth.local/configured:1', config: configuredImage }

/**
 * The longest groups, in two halves that take about the same time, and those beside them that others meet on the way. What
 * every unit needs each time is in neither: it is tried each day.
 */
const turns: readonly ClaimGroup[][] = [
  ['terminals', 'background', 'directories', 'hostileDirectories', 'bombs'],
  ['backgroundOnHost', 'hostileFiles', 'logs', 'limits', 'traffic'],
]

/** With machines made ahead for four days, and for four days without: in four days each group was in each class. */
const readyToday = Number(process.env.BERTH_TEST_READY ?? Math.floor(testSeed / 4) % 2)

function notToday(isolation: IsolationClass): Partial<Record<ClaimGroup, string>> {
  if (isDeep) return {}
  const here = isolation === 'runc' ? 0 : 1
  const resting = turns[Math.floor(testSeed / 2) % turns.length] ?? []
  const others = claimGroups.filter((_, index) => (index + testSeed) % 2 !== here)
  return Object.fromEntries([
    ...others.map((group) => [group, 'tried in the other class this time']),
    ...resting.map((group) => [group, 'tried on another day']),
  ])
}

async function openOnHost(isolation: IsolationClass, commands: GvisorCommands): Promise<OpenedEngine> {
  const host = await openHostEngine({
    isolation,
    runtimes: { ...driverDefaults, gvisorCommands: commands },
    readyMachines: { perKind: readyToday, memoryReserveMb: 0 },
  })
  return {
    engine: host.engine(),
    configuredImage: await deriveImage(host.engine(), [IMAGES_DIR, IMAGE], configured),
    cpuNs: host.cpuNs,
    reopen: host.reopen,
    close: host.close,
  }
}

export function describeHostContract(isolation: IsolationClass): void {
  describeEngineContract(
    `the real engine with ${isolation}`,
    // So that it is known which way is tried: a fault would make `auto` take the other one.
    async () => await openOnHost(isolation, isolation === 'gvisor' ? 'direct' : 'auto'),
    { ...optionsOf(isolation), without: notToday(isolation) },
  )
  if (isolation !== 'gvisor') return
  describeClaims(
    'the real engine with gvisor and commands by runsc exec',
    async () => await openOnHost(isolation, 'runsc'),
    optionsOf(isolation),
    ['exec'],
  )
}

function optionsOf(isolation: IsolationClass) {
  return { isolation, image: IMAGE, imageEnv: { name: 'LANG', value: 'C.UTF-8' } }
}
