// The kernel's connection tracking.

import { run } from '../../../lib/process.ts'

/** The next owner of the address must not receive packets for the last one (reliability I10). */
export async function forgetConnections(address: string): Promise<void> {
  const sides = ['--orig-src', '--orig-dst'].map((side) =>
    // Exits with 1 if there was none. Without the tool, connections end by their own timeouts.
    run('conntrack', ['-D', side, address], { timeoutMs: 5000 }).catch(() => undefined),
  )
  await Promise.all(sides)
}
