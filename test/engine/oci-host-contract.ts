// The engine of this host, with real runtimes, against the whole contract. Each isolation class is a test file of its
// own (oci-runc.host.test.ts, oci-gvisor.host.test.ts), so that the two run side by side.

import { createHash } from 'node:crypto'
import type { Engine, IsolationClass } from '../../src/engine/engine.ts'
import { openStore } from '../../src/engine/oci/images/store.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { describeEngineContract } from './contract.ts'
import { IMAGE, IMAGES_DIR, openHostEngine } from './host-engine.ts'
import { configuredImage, type OpenedEngine } from './suite.ts'

async function openOnHost(isolation: IsolationClass): Promise<OpenedEngine> {
  const host = await openHostEngine({ isolation })
  return {
    engine: host.engine(),
    configuredImage: await makeConfiguredImage(host.engine()),
    cpuNs: host.cpuNs,
    reopen: host.reopen,
    close: host.close,
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

export function describeHostContract(isolation: IsolationClass): void {
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
