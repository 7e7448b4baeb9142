// Ends this process once all that it printed has left it: a pipe whose reader is slow takes no more than it holds, and the
// rest would be lost.

import type { Writable } from 'node:stream'

export async function endProcess(exitCode: number): Promise<never> {
  await Promise.all([process.stdout, process.stderr].map(written))
  process.exit(exitCode)
}

/** Resolves also where the reader has gone. */
function written(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    stream.once('error', () => resolve())
    stream.write('', () => resolve())
  })
}
