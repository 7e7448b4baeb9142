// The kernel's memory of connections, beyond the rules and the wires.

import { run } from '../../../lib/process.ts'

/** Who gets the address next must not receive what was meant for its last owner (reliability I10). */
export async function forgetConnections(address: string): Promise<void> {
  const sides = ['--orig-src', '--orig-dst'].map((side) =>
    // Ends with 1 when there was none. Without the tool, connections end by their own timeouts.
    run('conntrack', ['-D', side, address], { timeoutMs: 5000 }).catch(() => undefined),
  )
  await Promise.all(sides)
}
