// What a run needs once its memory is restored: no groups of commands that are over, and a check that it answers.

import { type Cgroups } from '../kernel/cgroups.ts'
import { dissolveChildren } from '../kernel/cgroup-children.ts'
import { HELPER } from '../runtime/bundle.ts'
import type { Memory, Started } from '../runtime/driver.ts'

/** The memory of a run that does not answer is discarded. */
export async function enterRestored(
  cgroups: Cgroups,
  memory: Memory,
  container: string,
  signal: AbortSignal,
): Promise<Started> {
  dissolveChildren(cgroups, container)
  if (!(await memory.answers(container, [HELPER, 'true'], signal)))
    return { kind: 'failed', reason: 'it did not answer after its memory was restored' }
  await memory.endCommands(container, signal)
  return { kind: 'started' }
}
