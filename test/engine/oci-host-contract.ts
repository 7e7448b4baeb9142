// The engine of this host, with real runtimes, against the whole contract. Each isolation class is a test file of its
// own (oci-runc.host.test.ts, oci-gvisor.host.test.ts), so that the two run side by side. What the engine itself does, the
// same in both, `npm test` tries by turns: half of it a day, each group in one of the classes.

import type { IsolationClass } from '../../src/engine/engine.ts'
import { deriveImage } from '../support/derived-images.ts'
import { isDeep, testSeed } from '../support/part-of.ts'
import { type ClaimGroup, describeEngineContract } from './contract.ts'
import { IMAGE, IMAGES_DIR, openHostEngine } from './host-engine.ts'
import { configuredImage, type OpenedEngine } from './suite.ts'

const configured = { reference: 'berth.local/configured:1', config: configuredImage }

/** Each of these does the same with either runtime. */
const likeInBoth: ClaimGroup[] = [
  'environment',
  'files',
  'directories',
  'bootFiles',
  'logs',
  'exits',
  'storage',
  'bombs',
  'forks',
  'diskForks',
  'network',
  'traffic',
  'recover',
]

function triedElsewhere(isolation: IsolationClass): Partial<Record<ClaimGroup, string>> {
  if (isDeep) return {}
  const here = isolation === 'runc' ? 0 : 2
  const others = likeInBoth.filter((_, index) => (index + testSeed) % 4 !== here)
  return Object.fromEntries(others.map((group) => [group, 'tried in the other class or on another day']))
}

async function openOnHost(isolation: IsolationClass): Promise<OpenedEngine> {
  const host = await openHostEngine({ isolation })
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
    `the engine of this host with ${isolation}`,
    async () => await openOnHost(isolation),
    {
      isolation,
      image: IMAGE,
      imageEnv: { name: 'LANG', value: 'C.UTF-8' },
      without: triedElsewhere(isolation),
    },
  )
}
