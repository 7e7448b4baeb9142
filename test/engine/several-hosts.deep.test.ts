// The contract of the engine over three real engines, each with a network, disks and directories of its own, which a server
// calls by TLS through its fleet. `npm test` runs some groups of claims in one of the classes, others each day.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyEngine } from '../../src/engine/empty-engine.ts'
import { type IsolationClass, isolationClasses } from '../../src/engine/engine.ts'
import { createFleet, type Fleet, type FleetHost } from '../../src/engine/fleet.ts'
import type { FleetIdentity } from '../../src/lib/fleet-identity.ts'
import { driverDefaults } from '../../src/engine/oci/runtime/driver.ts'
import { openFarEngines } from '../../src/processes/far-engines.ts'
import { deriveImage } from '../support/derived-images.ts'
import { type FarHost, identityOf, openFarHost } from '../support/far-engine.ts'
import { isDeep, partOf, testSeed } from '../support/part-of.ts'
import { type ClaimGroup, claimGroups, describeEngineContract } from './contract.ts'
import { IMAGE, IMAGES_DIR } from './host-engine.ts'
import { type Spread, spreadEngine } from './spread-engine.ts'
import { configuredImage, type OpenedEngine } from './suite.ts'

const names = ['north', 'east', 'west']
/** In `npm test`. */
const GROUPS = 3
const configured = { reference: 'berth.local/configured:1', config: configuredImage }

describe.each(isDeep ? isolationClasses : [isolationClasses[testSeed % 2] ?? 'runc'])(
  'with %s',
  (isolation) => {
    let spread: Spread | null = null

    const open = async (): Promise<OpenedEngine> => {
      const fleetDir = await mkdtemp(join(tmpdir(), 'berth-several-'))
      // Before the others: it makes the authority.
      const identity = await identityOf(fleetDir, 'server', 'lead')
      const readyMachines = { perKind: testSeed % 2, memoryReserveMb: 0 }
      const options = {
        isolation,
        runtimes: {
          ...driverDefaults,
          ...(isolation === 'gvisor' ? { gvisorCommands: 'direct' as const } : {}),
        },
        readyMachines,
      }
      const opened = await Promise.allSettled(
        names.map(async (name, index) => await openFarHost({ name, fleetDir, index: 10 + index, options })),
      )
      const hosts = opened.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
      const close = async () => {
        const closed = await Promise.allSettled(hosts.map(async (each) => await each.close()))
        await rm(fleetDir, { recursive: true })
        for (const each of closed) if (each.status === 'rejected') throw each.reason
      }
      const images: string[] = []
      try {
        for (const each of opened) if (each.status === 'rejected') throw each.reason
        for (const { host } of hosts)
          images.push(await deriveImage(host.engine(), [IMAGES_DIR, IMAGE], configured))
      } catch (error) {
        await close()
        throw error
      }
      const members = joinFleet(identity, hosts)
      spread = spreadEngine(members.fleet, members.hosts)
      const hostOf = (id: string) => {
        const found = hosts.find(({ name }) => name === spread?.hostOf(id))
        if (!found) throw new Error('no host has this machine')
        return found
      }
      const { engine } = spread
      return {
        engine,
        configuredImage: images[0] ?? '',
        cpuNs: (ref) => hostOf(ref.id).host.cpuNs(ref),
        networkOf: (ref) => hostOf(ref.id).wire.network,
        reopen: async (between) => {
          await Promise.all(
            hosts.map(async ({ host }, index) => await host.reopen(index === 0 ? between : undefined)),
          )
          return engine
        },
        close,
      }
    }

    describeEngineContract('three real engines by TLS, through the fleet of a server,', open, {
      isolation,
      image: IMAGE,
      imageEnv: { name: 'LANG', value: 'C.UTF-8' },
      without: otherGroups(isolation),
    })

    it('each of the three hosts had machines', () => {
      expect(Math.min(...(spread?.counts() ?? [0]))).toBeGreaterThan(0)
    })
  },
)

/** As a server has them that leads, once they have joined. */
function joinFleet(identity: FleetIdentity, far: FarHost[]): { fleet: Fleet; hosts: FleetHost[] } {
  const local = { id: 'lead', name: 'lead', region: null, engine: emptyEngine }
  const followed = { current: () => identity, onRenewed: () => {}, stop: async () => {} }
  const fleet = createFleet(local, openFarEngines({ identity: followed, epoch: 1 }))
  const hosts = far.map(({ name, address }) =>
    fleet.open({ id: name, name, region: null, address }, new Date()),
  )
  for (const host of hosts) fleet.setAway(host, null)
  return { fleet, hosts }
}

function otherGroups(isolation: IsolationClass): Partial<Record<ClaimGroup, string>> {
  const seed = testSeed + (isolation === 'runc' ? 0 : 1)
  const here = partOf(claimGroups, GROUPS, seed)
  const others = claimGroups.filter((group) => !here.includes(group))
  return Object.fromEntries(others.map((group) => [group, 'tried by the deep tier']))
}
