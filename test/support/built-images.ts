// An images directory of a test's own whose built-in images are made in no time: of one package, in the version that
// "Debian" has at the moment.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { MachineSpec } from '../../src/engine/engine.ts'
import type { Builder } from '../../src/engine/oci/images/build.ts'
import { openBuilds } from '../../src/engine/oci/images/builds.ts'
import {
  type BuiltIn,
  builtInConfig,
  definitionDigest,
  referenceOf,
} from '../../src/engine/oci/images/builtin.ts'
import { imageLimits } from '../../src/engine/oci/images/image-limits.ts'
import type { GarbageCollector } from '../../src/engine/oci/images/garbage-collection.ts'
import { openInventory } from '../../src/engine/oci/images/inventory.ts'
import { buildDigest, readPackages, statusPathIn } from '../../src/engine/oci/images/packages.ts'
import { openReferences } from '../../src/engine/oci/images/references.ts'
import type { Refresher } from '../../src/engine/oci/images/refresh.ts'
import { type ImageStore, openStore } from '../../src/engine/oci/images/store.ts'
import type { FindUpdates } from '../../src/engine/oci/images/updates.ts'
import { registerInstance } from '../../src/engine/oci/images/instances.ts'
import { createPaths } from '../../src/engine/oci/paths.ts'
import { newRecord, saveRecord } from '../../src/engine/oci/records/record.ts'
import { silentLog } from '../../src/lib/log.ts'
import { createTestClock } from './clock.ts'

export const boat: BuiltIn = { name: 'boat', version: '1', packages: ['boat'], cmd: ['float'] }
export const raft: BuiltIn = { name: 'raft', version: '1', packages: ['boat'], cmd: ['drift'] }

/** What Debian offers, and how it behaves. `hold` is waited for in every build. */
export type Debian = {
  version: string
  isAway: boolean
  buildsFail: boolean
  hold: Promise<void>
  asked: number
  /** The plain system that the last build got. */
  plainSystem: string | null
}

export async function openBuiltImages() {
  const directory = await mkdtemp(join(tmpdir(), 'berth-built-'))
  const [imagesDir, dataDir] = [join(directory, 'images'), join(directory, 'data')]
  const clock = createTestClock()
  const debian: Debian = {
    version: '1.0',
    isAway: false,
    buildsFail: false,
    hold: Promise.resolve(),
    asked: 0,
    plainSystem: null,
  }
  const builder: Builder = async (definition, { rootfs }, { signal, plainSystem = null }) => {
    debian.plainSystem = plainSystem
    await debian.hold
    signal.throwIfAborted()
    if (debian.buildsFail) throw new Error('the package boat is broken')
    await writeStatus(rootfs, debian.version)
    const id = await definitionDigest(definition)
    return {
      reference: referenceOf(definition),
      digest: buildDigest(id, readPackages(rootfs)),
      config: builtInConfig(definition),
      build: { definition: id, archiveAt: null },
    }
  }
  const findUpdates: FindUpdates = async (rootfses) => {
    debian.asked += 1
    if (debian.isAway) throw new Error('Temporary failure resolving deb.debian.org')
    const versions = rootfses.map((rootfs) => readPackages(rootfs)['boat'] ?? '')
    return versions.map((has) =>
      has === debian.version ? [] : [{ name: 'boat', has, offers: debian.version }],
    )
  }
  const store = await openStore(imagesDir, clock)
  const builds = await openBuilds(imagesDir, { store, builder, clock })
  const closing = new AbortController()
  const building = { onProgress: () => {}, limits: imageLimits, signal: closing.signal }
  const shared = { imagesDir, store, builds, definitions: [boat, raft], clock, log: silentLog }
  const refresher: Refresher = { ...shared, findUpdates, building, reserveBytes: 0 }
  const collector: GarbageCollector = { ...shared, references: await openReferences(imagesDir) }
  return {
    imagesDir,
    dataDir,
    clock,
    debian,
    store,
    builds,
    refresher,
    collector,
    build: async (definition: BuiltIn, replaced: string | null = null) =>
      (await builds.build(definition, replaced, { ...building, background: false })).image.digest,
    openInventory: (said: string[] = []) =>
      openInventory({
        ...shared,
        findUpdates,
        builder,
        onProgress: (line) => said.push(line),
        signal: closing.signal,
      }),
    /** An image that is named by nothing but its digest. */
    add: (reference: string, digest: string) => addImage(store, reference, digest),
    /** A machine of an instance that shares the directory. */
    addMachine: async (id: string, imageDigest: string) => {
      await mkdir(dataDir, { recursive: true })
      await writeFile(join(dataDir, 'instance.json'), '{}')
      await registerInstance(imagesDir, { id: 'test', dataDir }, clock)
      const spec = { id, imageDigest } as MachineSpec
      await saveRecord(createPaths({ dataDir, runDir: '' }), newRecord(spec, ''))
    },
    removeMachine: (id: string) => rm(join(dataDir, 'machines', id), { recursive: true }),
    close: async () => {
      closing.abort()
      await rm(directory, { recursive: true })
    },
  }
}

export type BuiltImages = Awaited<ReturnType<typeof openBuiltImages>>

async function addImage(store: ImageStore, reference: string, digest: string): Promise<string> {
  const config = builtInConfig(boat)
  const fill = async ({ rootfs }: { rootfs: string }) => {
    await writeStatus(rootfs, '0.9')
    return { reference, config }
  }
  const { image } = await store.make({ digest, maker: 'a test' }, fill, AbortSignal.timeout(60_000))
  return image.digest
}

async function writeStatus(rootfs: string, version: string): Promise<void> {
  await mkdir(dirname(statusPathIn(rootfs)), { recursive: true })
  await writeFile(statusPathIn(rootfs), `Package: boat\nStatus: install ok installed\nVersion: ${version}\n`)
}
