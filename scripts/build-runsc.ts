// Builds the pinned runsc, unless it is there: `node scripts/build-runsc.ts`. The engine runs it at idle priority, the set-up of
// the tests as it is. It prints one word of how that went, or a sentence on stderr.

import { loadBuildSettings } from '../src/config.ts'
import { buildRunsc } from '../src/engine/oci/runsc-build/build.ts'
import { BUILT_RUNSC } from '../src/engine/oci/runsc-build/pinned.ts'

try {
  process.stdout.write(`${await buildRunsc(BUILT_RUNSC, loadBuildSettings())}\n`)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
