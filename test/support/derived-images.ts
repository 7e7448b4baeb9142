// An image of the tests again, with another configuration or other files: what it shares are links to the same ones.

import { createHash } from 'node:crypto'
import type { Engine, ImageConfig } from '../../src/engine/engine.ts'
import { openStore } from '../../src/engine/oci/images/store.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { runOrThrow } from '../../src/lib/process.ts'

export type Derived = {
  reference: string
  config?: Partial<ImageConfig>
  /** What is done to its files: a shell's script that runs in its root, and replaces files, but writes into none. */
  script?: string
}

/** Answers the digest. The same is made once. */
export async function deriveImage(
  engine: Engine,
  [imagesDir, from]: [imagesDir: string, from: string],
  derived: Derived,
): Promise<string> {
  const source = await engine.pull(from)
  const store = await openStore(imagesDir, systemClock)
  const identity = createHash('sha256').update(JSON.stringify([source.digest, derived]))
  const { image } = await store.make(
    { digest: `sha256:${identity.digest('hex')}`, maker: 'a test' },
    async ({ rootfs }) => {
      const files = (await store.find(source.digest))?.rootfs ?? ''
      await runOrThrow('cp', ['--archive', '--link', files, rootfs], { timeoutMs: 60_000 })
      const { script, reference, config } = derived
      if (script !== undefined) await runOrThrow('sh', ['-euc', script], { cwd: rootfs, timeoutMs: 60_000 })
      return { reference, config: { ...source.config, ...config } }
    },
    AbortSignal.timeout(120_000),
  )
  return image.digest
}
