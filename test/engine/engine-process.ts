// An engine in a process of its own, spoken to over its socket as the product's is: what a test needs that
// kills it.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { OciEngine, OciOptions } from '../../src/engine/oci/oci-engine.ts'
import { connectEngine } from '../../src/engine/socket-client.ts'
import { SAFE_PATH } from '../../src/lib/process.ts'

export type EngineProcessInput = {
  options: Omit<OciOptions, 'onProgress' | 'log' | 'clock' | 'failpoints'>
  socketPath: string
  failpointsDir: string
}

const program = fileURLToPath(new URL('engine-process-main.ts', import.meta.url))

/** Ready once it resolves. Closing one that was killed succeeds. */
export async function openEngineProcess(options: OciOptions, failpointsDir: string): Promise<OciEngine> {
  const { onProgress: _, log: __, clock: ___, failpoints: ____, ...rest } = options
  const socketPath = join(options.runDir, 'engine.sock')
  const input: EngineProcessInput = { options: rest, socketPath, failpointsDir }
  const child = spawn(process.execPath, [program], {
    env: { PATH: SAFE_PATH },
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  })
  child.stdin.end(`${JSON.stringify(input)}\n`)
  const ended = once(child, 'exit')
  const said = await Promise.race([once(child.stdout, 'data'), ended])
  if (String(said[0]) !== 'ready\n') throw new Error('the engine did not come up')
  return {
    ...connectEngine({ socketPath, epoch: 1, onLost: () => {} }),
    close: async () => {
      child.kill('SIGTERM')
      await ended
    },
  }
}
