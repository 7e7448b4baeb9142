// The engine of this host, with real runtimes in both isolation classes, against the whole contract; and
// that nothing of it is left on the host afterwards, nor anything of the host's own changed.

import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { expect, vi } from 'vitest'
import { openStore } from '../../src/engine/oci/images/store.ts'
import { openOciEngine } from '../../src/engine/oci/oci-engine.ts'
import type { Engine, IsolationClass } from '../../src/engine/engine.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { RESOLVER_PORT } from '../../src/roles/channel.ts'
import { loadInstance, runDirOf } from '../../src/supervisor/instance.ts'
import { cleanHost, hostStateOf } from '../support/host-state.ts'
import { describeEngineContract } from './contract.ts'
import { configuredImage, type OpenedEngine } from './suite.ts'

/** Images are built once and used by all tests. */
const IMAGES_DIR = '/var/lib/berth-test/images'
const IMAGE = 'berth.local/debian:12'

/** Files of the host that a machine would reach if anything led out of it. */
const hostFiles = [
  '/etc/hostname',
  '/etc/hosts',
  '/etc/passwd',
  '/etc/resolv.conf',
  '/proc/sys/kernel/core_pattern',
]

async function openOnHost(isolation: IsolationClass): Promise<OpenedEngine> {
  const before = await readHostFiles()
  const dataDir = await mkdtemp('/var/tmp/berth-contract-')
  const instance = await loadInstance(dataDir)
  const runDir = runDirOf(instance)
  const openAgain = async () =>
    await openOciEngine({
      instance,
      dataDir,
      imagesDir: IMAGES_DIR,
      runDir,
      isolation,
      poolGb: 16,
      reserveGb: 1,
      registryMirrors: {},
      registryAuthFile: null,
      upstreamProxy: null,
      onProgress: () => {},
      resolverPort: RESOLVER_PORT,
      log: silentLog,
      clock: systemClock,
    })
  let engine = await openAgain()
  return {
    engine,
    configuredImage: await makeConfiguredImage(engine),
    reopen: async () => {
      await engine.close()
      engine = await openAgain()
      return engine
    },
    close: async () => {
      await engine.recover([])
      await engine.close()
      try {
        // The kernel lets go of a loop device a moment after its last mount.
        await vi.waitFor(async () => expect(await hostStateOf(instance, dataDir)).toEqual(cleanHost), 5000)
        expect(await readHostFiles()).toEqual(before)
      } finally {
        await rm(dataDir, { recursive: true })
        await rm(runDir, { recursive: true, force: true })
      }
    },
  }
}

/** The Debian image again, under another configuration: its files are links to the same ones. */
async function makeConfiguredImage(engine: Engine): Promise<string> {
  const debian = await engine.pull(IMAGE)
  const store = await openStore(IMAGES_DIR, systemClock)
  const identity = createHash('sha256').update(JSON.stringify([debian.digest, configuredImage]))
  const { image } = await store.make(
    `sha256:${identity.digest('hex')}`,
    async ({ rootfs }) => {
      const source = (await store.find(debian.digest))?.rootfs ?? ''
      await runOrThrow('cp', ['--archive', '--link', source, rootfs], { timeoutMs: 60_000 })
      return { reference: 'berth.local/configured:1', config: configuredImage }
    },
    AbortSignal.timeout(120_000),
  )
  return image.digest
}

async function readHostFiles(): Promise<Record<string, string>> {
  const pairs = await Promise.all(
    hostFiles.map(async (path) => [path, await readFile(path, 'utf8')] as const),
  )
  return Object.fromEntries(pairs)
}

for (const isolation of ['runc', 'gvisor'] as const) {
  describeEngineContract(
    `the engine of this host with ${isolation}`,
    async () => await openOnHost(isolation),
    {
      isolation,
      image: IMAGE,
      imageEnv: { name: 'LANG', value: 'C.UTF-8' },
    },
  )
}
