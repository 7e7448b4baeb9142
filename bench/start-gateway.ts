// Starts a gateway by itself (lone-gateway.ts), for the benchmarks that compare it with other proxies.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { keptForStreams, streamFlags } from '../src/supervisor/process-command.ts'
import type { LoneGateway } from './lone-gateway.ts'
import { makeCertificate } from './proxies.ts'
import { cpuSecondsOf } from './service.ts'

export const DOMAIN = 'berth.localhost'
/** The gateway of this checkout. */
export const loneGateway = fileURLToPath(new URL('lone-gateway.ts', import.meta.url))

export type StartedGateway = {
  http: number
  tls: number
  cpuSeconds: () => number
  pid: number
  stop(): Promise<void>
}

/** Returns the path of a new certificate with its key in one file, as the gateway and haproxy read it. */
export async function makeCertificateFile(directory: string): Promise<string> {
  await makeCertificate(directory)
  const path = join(directory, 'both.pem')
  const parts = await Promise.all(
    ['cert.pem', 'key.pem'].map((file) => readFile(join(directory, file), 'utf8')),
  )
  await writeFile(path, parts.join(''))
  return path
}

/** `path`: `bench/lone-gateway.ts` of this checkout or of another one. */
export async function startGateway(
  path: string,
  given: Omit<LoneGateway, 'domain'>,
): Promise<StartedGateway> {
  const child = spawn(
    process.execPath,
    [...streamFlags, path, JSON.stringify({ domain: DOMAIN, ...given })],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { PATH: process.env['PATH'], ...keptForStreams },
    },
  )
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const ports = JSON.parse(line) as { http: number; tls: number }
  return {
    ...ports,
    pid: child.pid ?? 0,
    cpuSeconds: () => cpuSecondsOf(child.pid ?? 0),
    stop: async () => {
      const ended = once(child, 'exit')
      child.stdin.end()
      await ended
    },
  }
}
