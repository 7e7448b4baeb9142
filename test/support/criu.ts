// Whether this host has a CRIU that works, as the set-up has found (scripts/criu.sh). Without one all else works, and
// what claims that memory outlives a run is skipped.

import { readFileSync } from 'node:fs'
import { release } from 'node:os'
import { type EngineFailpoint, engineFailpoints } from '../../src/engine/oci/failpoints.ts'

export const hasCriu = worksWith() === release()

/** The engine's failpoints that are reached on this host. */
export const reachedFailpoints: EngineFailpoint[] = engineFailpoints.filter(
  (name) => hasCriu || !name.startsWith('engine.checkpoint.'),
)

function worksWith(): string {
  try {
    return readFileSync('/usr/local/lib/berth/criu/works-with', 'utf8').trim()
  } catch {
    return ''
  }
}
