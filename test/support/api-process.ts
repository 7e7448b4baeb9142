// A server in a process of its own, so that it can be killed, or stand beside another one.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { SAFE_PATH } from '../../src/lib/process.ts'

export type ApiProcessInput = {
  databaseUrl: string
  /** As in the environment (docs/settings.md). */
  settings: Record<string, string>
  /** In hexadecimal: servers that share a database share it. */
  secretKey: string
}

export type ApiProcess = {
  pid: number
  baseUrl: string
  /** Dies on the spot, with everything under way. */
  kill(): Promise<void>
  stop(): Promise<void>
}

const program = fileURLToPath(new URL('api-process-main.ts', import.meta.url))

/** Listens once it resolves. `nodeOptions`: such as `--cpu-prof`. `descriptors`: the most it may have open. */
export async function startApiProcess(
  input: ApiProcessInput,
  nodeOptions: string[] = [],
  descriptors: number | null = null,
): Promise<ApiProcess> {
  const limited = descriptors === null ? [] : ['prlimit', `--nofile=${descriptors}:${descriptors}`]
  const [command, ...args] = [...limited, process.execPath, ...nodeOptions, program]
  const child = spawn(command, args, {
    env: { PATH: SAFE_PATH },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin.end(`${JSON.stringify(input)}\n`)
  const ended = once(child, 'exit')
  const said = await Promise.race([once(child.stdout, 'data'), ended])
  const port = Number(String(said[0]))
  if (!(port > 0)) throw new Error('the server did not come up')
  const end = async (signal: 'SIGKILL' | 'SIGTERM') => {
    child.kill(signal)
    await ended
  }
  return {
    pid: child.pid ?? 0,
    baseUrl: `http://127.0.0.1:${port}`,
    kill: async () => await end('SIGKILL'),
    stop: async () => await end('SIGTERM'),
  }
}
