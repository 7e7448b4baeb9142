// The engine of this host, with real runtimes, against the whole contract. Each isolation class is a test file of its
// own (oci-runc.host.test.ts, oci-gvisor.host.test.ts), so that the two run side by side. `npm test` tries a part of what
// takes long in both: another part each day.

import type { IsolationClass } from '../../src/engine/engine.ts'
import { deriveImage } from '../support/derived-images.ts'
import { isDeep, testSeed } from '../support/part-of.ts'
import { type ClaimGroup, describeEngineContract } from './contract.ts'
import { IMAGE, IMAGES_DIR, openHostEngine } from './host-engine.ts'
import { configuredImage, type OpenedEngine } from './suite.ts'

const configured = { reference: 'berth.local/configured:1', config: configuredImage }

/** Each of these is the engine's own work, the same with either runtime: tried every other day, in one of the classes. */
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

/** Each of these takes long and is nearly the same with either runtime: tried each day, in one of the classes. */
const nearlyLikeInBoth: ClaimGroup[] = [
  'background',
  'backgroundOnHost',
  'hostileFiles',
  'hostileDirectories',
  'limits',
  'restart',
]

function triedElsewhere(isolation: IsolationClass): Partial<Record<ClaimGroup, string>> {
  if (isDeep) return {}
  const isRunc = isolation === 'runc'
  const others = [
    ...likeInBoth.filter((_, index) => (index + testSeed) % 4 !== (isRunc ? 0 : 2)),
    ...nearlyLikeInBoth.filter((_, index) => (index + testSeed) % 2 !== (isRunc ? 0 : 1)),
  ]
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
