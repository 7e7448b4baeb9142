// The engine of this host for a test: a data directory and an instance of its own, and at the end the proof
// that nothing of it is left on the host, nor anything of the host's own changed.

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { readFileSync } from 'node:fs'
import { expect, vi } from 'vitest'
import type { IsolationClass, MachineRef, MachineStatus } from '../../src/engine/engine.ts'
import type { MachineRecord } from '../../src/engine/oci/records/record.ts'
import { cgroupPath, openCgroups } from '../../src/engine/oci/kernel/cgroups.ts'
import { reapOrphans } from '../../src/engine/oci/kernel/children.ts'
import { openOciEngine, type OciEngine, type OciOptions } from '../../src/engine/oci/oci-engine.ts'
import { createPaths, type Paths } from '../../src/engine/oci/paths.ts'
import { nameFirstRun } from '../../src/engine/oci/warm-pool/ready.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { EGRESS_PORTS, RESOLVER_PORT } from '../../src/processes/channel.ts'
import { loadInstance, runDirOf } from '../../src/supervisor/instance.ts'
import { hostFacts } from '../support/host-facts.ts'
import { removeOrClear } from '../support/clear-host.ts'
import { cleanHost, hostStateOf } from '../support/host-state.ts'
import { forgetDataDir, noteDataDir } from '../support/instances.ts'
import { differencesOf, instanceFacts, machineFacts } from '../support/machine-facts.ts'
import { testRuntimes } from '../support/memory-kept.ts'
import { withoutWaiting } from '../support/ready-facts.ts'
import { createSuite, type Suite } from './suite.ts'

/** Images are built once and used by all tests. */
export const IMAGES_DIR = '/var/lib/berth-test/images'
export const IMAGE = 'berth.local/debian:12'

/** What a machine had is removed after its end was told: zombies, wires, loop devices take a moment. */
const SETTLE_MS = 20_000

/** Files of the host that a machine would reach if anything led out of it. */
const hostFiles = [
  '/etc/hostname',
  '/etc/hosts',
  '/etc/passwd',
  '/etc/resolv.conf',
  '/proc/sys/kernel/core_pattern',
]

/** `network`: the path of the network namespace in which `open` runs it, if not this one. */
export async function openHostEngine(
  overrides: Partial<OciOptions> = {},
  open: (options: OciOptions) => Promise<OciEngine> = openOciEngine,
  network: string | null = null,
) {
  const before = await readHostFiles()
  const dataDir = await mkdtemp('/var/tmp/berth-contract-')
  await noteDataDir(dataDir)
  const instance = overrides.instance ?? (await loadInstance(dataDir))
  const runDir = runDirOf(instance)
  const options: OciOptions = {
    instance,
    dataDir,
    imagesDir: IMAGES_DIR,
    runDir,
    isolation: 'auto',
    poolGb: 16,
    reserveGb: 1,
    teamDiskPercent: 50,
    poolSpace: 'sparse',
    registryMirrors: {},
    registryAuthFile: null,
    upstreamProxy: null,
    onProgress: () => {},
    resolverPort: RESOLVER_PORT,
    egress: { ports: EGRESS_PORTS, gid: null, sockets: null, onNeeded: () => {} },
    log: silentLog,
    clock: systemClock,
    runtimes: testRuntimes,
    // None, since faults are asked for by the step, and making one takes the same steps. To see what those tests do with them:
    // `BERTH_TEST_READY=1 npm run test:host`.
    readyMachines: { perKind: Number(process.env.BERTH_TEST_READY ?? 0), memoryReserveMb: 0 },
    ...overrides,
  }
  const cgroups = openCgroups(instance.id)
  const paths = createPaths(options)
  let engine = await open(options)
  return {
    instance,
    options,
    cgroups,
    paths,
    engine: (): OciEngine => engine,

    /** Closes the engine, lets something happen that no engine sees, and opens another over what is there. */
    reopen: async (between: () => Promise<void> = async () => {}): Promise<OciEngine> => {
      await engine.close()
      await between()
      engine = await open(options)
      return engine
    },

    /** Processor time that the processes of a run have used so far. */
    cpuNs: ({ id, generation }: MachineRef): number => {
      // A run that was made ahead keeps the group that it was made in.
      const record = JSON.parse(readFileSync(paths.machine(id).record, 'utf8')) as MachineRecord
      nameFirstRun(paths, record)
      const { container } = paths.run(id, generation)
      const group = (tree = '') => `${tree}${cgroupPath(openCgroups(instance.id), container)}`
      if (cgroups.version === 1) {
        return Number(readFileSync(`${group(cgroups.trees['cpuacct'])}/cpuacct.usage`, 'utf8'))
      }
      const stat = readFileSync(`${group(cgroups.main)}/cpu.stat`, 'utf8')
      return 1000 * Number(/^usage_usec (\d+)$/m.exec(stat)?.[1])
    },

    /** Passes once the host has for this engine exactly what its list of machines says. */
    expectAsListed: async (): Promise<void> => {
      await vi.waitFor(
        async () => {
          const machines = await engine.list()
          const wanted = [...instanceFacts(dataDir), ...(await listedFacts(machines, paths))]
          // Before its first start a machine may have its wire already.
          const early = machines.filter(({ state }) => state === 'created').map(({ address }) => address)
          const found = withoutWaiting(await hostFacts(instance, dataDir), wanted).filter(
            (fact) => !early.some((address) => fact === `${address} is plugged in`),
          )
          expect(differencesOf(wanted, found)).toEqual([])
        },
        { timeout: SETTLE_MS, interval: 200 },
      )
    },

    close: async (): Promise<void> => {
      await removeOrClear(dataDir, async () => {
        await engine.recover([])
        await engine.close()
        // An engine that has run in this process has made it inherit the children of one that was killed in another.
        void reapOrphans()
        // The kernel lets go of a loop device a moment after its last mount.
        const isClean = async () => expect(await hostStateOf(instance, dataDir, network)).toEqual(cleanHost)
        await vi.waitFor(isClean, { timeout: 60_000, interval: 200 })
        expect(await readHostFiles()).toEqual(before)
        await rm(dataDir, { recursive: true })
        await rm(runDir, { recursive: true, force: true })
        await forgetDataDir(dataDir)
      })
    },
  }
}

async function listedFacts(machines: MachineStatus[], paths: Paths): Promise<string[]> {
  const facts = machines.map(async ({ id, generation, state, frozen, address }) => {
    const text = await readFile(paths.machine(id).record, 'utf8')
    const { spec, madeAs } = JSON.parse(text) as Pick<MachineRecord, 'spec' | 'madeAs'>
    const { networkGroup: group, isolation } = spec
    const run = state === 'running' ? { generation, frozen } : null
    return machineFacts({ id, address, group, isolation, hasVolume: spec.volume !== null, run, madeAs })
  })
  return (await Promise.all(facts)).flat()
}

async function readHostFiles(): Promise<Record<string, string>> {
  const pairs = await Promise.all(
    hostFiles.map(async (path) => [path, await readFile(path, 'utf8')] as const),
  )
  return Object.fromEntries(pairs)
}

export type HostEngine = Awaited<ReturnType<typeof openHostEngine>>

/** The suite of a file's own engine: `host` returns the one that the file has opened when the suite opens. */
export function createHostSuite(isolation: IsolationClass, host: () => HostEngine): Suite {
  return createSuite(
    async () => ({
      engine: host().engine(),
      configuredImage: '',
      reopen: async (between) => await host().reopen(between),
      close: async () => await host().close(),
    }),
    { isolation, image: IMAGE, imageEnv: { name: 'LANG', value: 'C.UTF-8' } },
  )
}
