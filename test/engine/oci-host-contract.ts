// The real engine with real runtimes against the whole contract. Each isolation class has its own test file
// (oci-runc.host.test.ts, oci-gvisor.host.test.ts), so that they run in parallel. `npm test` runs each group of claims in one
// of the classes, the deep tier in both (decisions/tests.md).

import type { IsolationClass } from '../../src/engine/engine.ts'
import { deriveImage } from '../support/derived-images.ts'
import { isDeep, testSeed } from '../support/part-of.ts'
import { driverDefaults, type GvisorCommands } from '../../src/engine/oci/runtime/driver.ts'
import { type ClaimGroup, claimGroups, describeClaims, describeEngineContract } from './contract.ts'
import { IMAGE, IMAGES_DIR, openHostEngine } from './host-engine.ts'
import { configuredImage, type OpenedEngine } from './suite.ts'

const configured = { reference: 'berth.local/configured:1', config: configuredImage }

/** How many machines are made ahead: gVisor's claims are tried with them, runc's without. The next seed is the other way round. */
function machinesAhead(isolation: IsolationClass): number {
  return Number(process.env.BERTH_TEST_READY ?? (testSeed + (isolation === 'gvisor' ? 1 : 0)) % 2)
}

/** Three minutes by themselves: a machine that uses up whatever it can. */
const deepOnly: readonly ClaimGroup[] = ['bombs']

function notHere(isolation: IsolationClass): Partial<Record<ClaimGroup, string>> {
  if (isDeep) return {}
  const here = isolation === 'runc' ? 0 : 1
  const others = claimGroups.filter((_, index) => (index + testSeed) % 2 !== here)
  return Object.fromEntries([
    ...others.map((group) => [group, 'tried in the other class']),
    ...deepOnly.map((group) => [group, 'tried by the deep tier']),
  ])
}

async function openOnHost(isolation: IsolationClass, commands: GvisorCommands): Promise<OpenedEngine> {
  const host = await openHostEngine({
    isolation,
    runtimes: { ...driverDefaults, gvisorCommands: commands },
    readyMachines: { perKind: machinesAhead(isolation), memoryReserveMb: 0 },
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
    { ...optionsOf(isolation), without: notHere(isolation) },
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
