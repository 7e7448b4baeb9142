// The contract of every Engine (src/engine/engine.ts) as one test suite. The fake engine, the same over its socket, and the
// real engine in both isolation classes must pass it. A claim that an engine cannot fulfil is switched off by name, with
// the reason in the title of the test.

import { afterAll, beforeAll, describe } from 'vitest'
import { backgroundClaims } from './claims/background.ts'
import { backgroundHostClaims } from './claims/background-host.ts'
import { bombClaims } from './claims/bombs.ts'
import { bootFileClaims } from './claims/boot-files.ts'
import { directoryClaims, hostileDirectoryClaims } from './claims/directories.ts'
import { diskForkClaims } from './claims/disk-forks.ts'
import { environmentClaims } from './claims/environment.ts'
import { execClaims } from './claims/exec.ts'
import { exitClaims } from './claims/exits.ts'
import { fileClaims } from './claims/files.ts'
import { forkClaims } from './claims/forks.ts'
import { freezingClaims } from './claims/freezing.ts'
import { hostileFileClaims } from './claims/hostile-files.ts'
import { lifecycleClaims } from './claims/lifecycle.ts'
import { limitClaims } from './claims/limits.ts'
import { logClaims } from './claims/logs.ts'
import { countedClaims, metricsClaims } from './claims/metrics.ts'
import { networkClaims } from './claims/network.ts'
import { outputClaims } from './claims/output.ts'
import { postureClaims } from './claims/posture.ts'
import { hostilePlaceClaims, placedFileClaims } from './claims/placed-files.ts'
import { processClaims } from './claims/processes.ts'
import { recoverClaims } from './claims/recover.ts'
import { restartClaims } from './claims/restart.ts'
import { trafficClaims } from './claims/traffic.ts'
import { storageClaims } from './claims/storage.ts'
import { realUserClaims, userClaims } from './claims/users.ts'
import { terminalClaims } from './claims/terminals.ts'
import { watchingClaims } from './claims/watching.ts'
import { createSuite, type OpenEngine, type Suite, type SuiteOptions } from './suite.ts'

/** Every group of claims. An engine meets all of them, but for those its options name in `without`. */
const claims = {
  lifecycle: lifecycleClaims,
  environment: environmentClaims,
  exec: execClaims,
  /** Large writes, and what a command leaves behind. */
  output: outputClaims,
  /** Commands that are typed to. */
  terminals: terminalClaims,
  /** Process trees, descriptors and signals. */
  processes: processClaims,
  /** Commands that outlive their calls, and of these what takes real processes and another engine. */
  background: backgroundClaims,
  backgroundOnHost: backgroundHostClaims,
  files: fileClaims,
  /** Links, FIFOs, devices: what a unit can put where a caller reads or writes. */
  directories: directoryClaims,
  hostileFiles: hostileFileClaims,
  hostileDirectories: hostileDirectoryClaims,
  /** Streams, owners, and what is moved and made. */
  placedFiles: placedFileClaims,
  hostilePlaces: hostilePlaceClaims,
  /** For whom commands run, and what runs. */
  users: userClaims,
  realUsers: realUserClaims,
  watching: watchingClaims,
  bootFiles: bootFileClaims,
  logs: logClaims,
  exits: exitClaims,
  /** Standing still and going on, and what the host has. */
  freezing: freezingClaims,
  /** What a disk keeps over the ends of runs. */
  storage: storageClaims,
  forks: forkClaims,
  /** What a fork has of its source's disk and kernel, and what not. */
  diskForks: diskForkClaims,
  limits: limitClaims,
  /** What it uses, told without a process in it; and whether that is what it does. */
  metrics: metricsClaims,
  counted: countedClaims,
  /** What a machine takes beside its size, and others who are answered meanwhile. */
  bombs: bombClaims,
  network: networkClaims,
  /** Packets between siblings, as use. */
  traffic: trafficClaims,
  posture: postureClaims,
  recover: recoverClaims,
  /** A new engine over what an earlier one left running. */
  restart: restartClaims,
} satisfies Record<string, (suite: Suite) => void>

export type ClaimGroup = keyof typeof claims
export const claimGroups = Object.keys(claims) as ClaimGroup[]
export type ContractOptions = SuiteOptions & { without?: Partial<Record<ClaimGroup, string>> }

export function describeEngineContract(name: string, open: OpenEngine, options: ContractOptions): void {
  describe(`${name} keeps the engine contract`, () => {
    const suite = createSuite(open, options)
    beforeAll(async () => await suite.open())
    afterAll(async () => await suite.close())
    for (const group of claimGroups) {
      const reason = options.without?.[group]
      if (reason === undefined) describe(group, () => claims[group](suite))
      else describe.skip(`${group}: NOT CLAIMED, ${reason}`, () => claims[group](suite))
    }
  })
}

/** Some groups of the contract alone, for an engine that differs from another in what these claim. */
export function describeClaims(
  name: string,
  open: OpenEngine,
  options: SuiteOptions,
  groups: ClaimGroup[],
): void {
  describe(`${name} keeps its part of the engine contract`, () => {
    const suite = createSuite(open, options)
    beforeAll(async () => await suite.open())
    afterAll(async () => await suite.close())
    for (const group of groups) describe(group, () => claims[group](suite))
  })
}
