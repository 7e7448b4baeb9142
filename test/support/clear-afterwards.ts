// Takes off the host what the last hooks of a suite have left of an instance. After one that fails vitest calls no further
// one of its suite, and the files that follow would meet what these were to remove.

import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { aroundAll } from 'vitest'
import { runOrThrow } from '../../src/lib/process.ts'
import { clear } from './clear-host.ts'

/** Does nothing where the hooks have removed both. `network`: the namespace that it runs in, as a path. */
export function clearAfterwards(dataDir: string, network: string | null = null): void {
  aroundAll(async (runSuite) => {
    await runSuite()
    if (existsSync(dataDir)) await clear(dataDir)
    if (network !== null && existsSync(network))
      await runOrThrow('ip', ['netns', 'delete', basename(network)], { timeoutMs: 20_000 })
  })
}
