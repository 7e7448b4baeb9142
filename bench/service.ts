// A Berth of its own for the benchmark: a temporary data directory, free ports, one isolation class.

import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../src/lib/free-port.ts'

export type Berth = {
  pid: number
  dataDir: string
  baseUrl: string
  apiKey: string
  caFile: string
  /** Where visits arrive, `host:port`. */
  gatewayHttp: string
  gatewayTls: string
  /** Root directory of the image the benchmark uses, for the peer. */
  rootfs(): string
  stop(): Promise<void>
}

const IMAGES_DIR = '/var/lib/berth-test/images'
/** USER_HZ, the same on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100
const START_TIMEOUT_MS = 10 * 60_000

/** `settings`: beyond those that every measurement has. */
export async function startBerth(isolation: string, settings: Record<string, string>): Promise<Berth> {
  const dataDir = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  const free = () => freePort('127.0.0.1')
  const [api, http, tls, mysql] = await Promise.all([free(), free(), free(), free()])
  const child = spawn(process.execPath, ['src/main.ts', 'all'], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      PATH: process.env['PATH'] ?? '',
      BERTH_DATA_DIR: dataDir,
      BERTH_IMAGES_DIR: IMAGES_DIR,
      BERTH_IMAGE_UPDATES: 'never',
      BERTH_IMAGE_KEEP: 'never',
      BERTH_API_ADDRESS: `127.0.0.1:${api}`,
      BERTH_GATEWAY_HTTP: `127.0.0.1:${http}`,
      BERTH_GATEWAY_TLS: `127.0.0.1:${tls}`,
      BERTH_GATEWAY_MYSQL: `127.0.0.1:${mysql}`,
      BERTH_METRICS: '127.0.0.1:0',
      BERTH_GATEWAY_METRICS: '127.0.0.1:0',
      BERTH_ISOLATION: isolation,
      BERTH_FROZEN_FOR: 'never',
      // Creates that find a machine ready are measured by themselves (`ready`).
      BERTH_READY_MACHINES: '0',
      BERTH_POOL_GB: '20',
      BERTH_LOG_LEVEL: 'warn',
      // A benchmark asks more of one key than a caller may.
      BERTH_RATE_REQUESTS: '1000000',
      BERTH_RATE_CREATIONS: '1000000',
      BERTH_RATE_EXECS: '1000000',
      BERTH_TEAM_COMMANDS: '10000',
      // Which way commands take, to compare the two.
      BERTH_GVISOR_COMMANDS: process.env['BERTH_GVISOR_COMMANDS'] ?? 'auto',
      // Which gVisor, to compare two; none is built beside a measurement.
      ...(process.env['BERTH_RUNSC'] === undefined ? {} : { BERTH_RUNSC: process.env['BERTH_RUNSC'] }),
      BERTH_RUNSC_BUILD: 'off',
      ...settings,
    },
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const stop = async () => {
    child.kill('SIGTERM')
    await ended
    await rm(dataDir, { recursive: true, force: true })
  }
  try {
    const credentials = await waitForCredentials(dataDir, ended)
    return {
      pid: child.pid ?? 0,
      dataDir,
      ...credentials,
      gatewayHttp: `127.0.0.1:${http}`,
      gatewayTls: `127.0.0.1:${tls}`,
      rootfs: () => debianRootfs(),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Resident memory of the processes below the supervisor, Postgres left out. */
export function memoryOf(supervisor: number): string {
  const rows = descendants(supervisor).flatMap((pid) => {
    const name = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    const role = name.find((part) => ['engine', 'server', 'gateway'].includes(part))
    return role && name[0]?.includes('node') ? [{ role, mb: Math.round(residentKb(pid) / 1024) }] : []
  })
  const total = rows.reduce((sum, row) => sum + row.mb, 0)
  return `${rows.map(({ role, mb }) => `${role} ${mb} MB`).join(', ')}; together ${total} MB`
}

/** The process of a role below the supervisor. */
export function pidOfRole(supervisor: number, role: string): number {
  const found = descendants(supervisor).find((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').endsWith(`src/main.ts\0${role}\0`),
  )
  if (found === undefined) throw new Error(`Berth has no ${role}.`)
  return found
}

export function residentKb(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)
}

/** Processor time of the service by now: supervisor, roles, Postgres, and the units' monitors and machines. */
export function cpuSecondsOf(supervisor: number): number {
  const ticks = [supervisor, ...descendants(supervisor)].map((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      // Fields 14 to 17 of the line: its own time in user and kernel mode, and that of children that have ended.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    } catch {
      return 0
    }
  })
  return ticks.reduce((sum, each) => sum + each, 0) / TICKS_PER_SECOND
}

function descendants(root: number): number[] {
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]))
    } catch {
      // It ended while we were reading.
    }
  }
  const below = (pid: number): number[] =>
    [...parents].filter(([, parent]) => parent === pid).flatMap(([child]) => [child, ...below(child)])
  return below(root)
}

async function waitForCredentials(
  dataDir: string,
  ended: Promise<void>,
): Promise<Pick<Berth, 'baseUrl' | 'apiKey' | 'caFile'>> {
  let gone = false
  void ended.then(() => (gone = true))
  const deadline = performance.now() + START_TIMEOUT_MS
  while (performance.now() < deadline && !gone) {
    try {
      const credentials = JSON.parse(await readFile(join(dataDir, 'credentials.json'), 'utf8')) as {
        baseUrl: string
        apiKey: string
        caFile: string
      }
      const answer = await fetch(`${credentials.baseUrl}/v1/openapi.json`)
      await answer.arrayBuffer()
      if (answer.ok) return credentials
    } catch {
      // Not up yet.
    }
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  throw new Error('Berth did not come up: what it said is above.')
}

function debianRootfs(): string {
  for (const name of readdirSync(IMAGES_DIR)) {
    try {
      const image = readFileSync(join(IMAGES_DIR, name, 'image.json'), 'utf8')
      if (image.includes('berth.local/debian')) return join(IMAGES_DIR, name, 'rootfs')
    } catch {
      // Not an image.
    }
  }
  throw new Error('The image berth.local/debian:12 is not there.')
}
