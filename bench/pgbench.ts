// A Postgres of Debian's that pgbench asks through a proxy. It trusts everyone on loopback and is gone with the benchmark.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../src/lib/free-port.ts'
import { run, runOrThrow } from '../src/lib/process.ts'

/** Debian 12 has this one. */
const BIN = '/usr/lib/postgresql/15/bin'
const USER = 'postgres'
const TIMEOUT_MS = 60_000

export type BenchedPostgres = {
  port: number
  /** Reads by eight clients over TLS at a port of loopback, by the name that they ask for. */
  bench(
    through: { port: number; name: string },
    seconds: number,
  ): Promise<{ amount: number; seconds: number }>
  stop(): Promise<void>
}

export async function startPostgresForPgbench(directory: string): Promise<BenchedPostgres> {
  const [uid, gid] = await Promise.all([idOf('-u'), idOf('-g')])
  await mkdir(directory)
  await chown(directory, uid, gid)
  const data = join(directory, 'data')
  const as = ['-u', USER, '--']
  const initdb = [...as, join(BIN, 'initdb'), '--auth=trust', '--no-sync', data]
  await runOrThrow('runuser', initdb, { timeoutMs: TIMEOUT_MS })
  const port = await freePort('127.0.0.1')
  const settings = ['listen_addresses=127.0.0.1', `unix_socket_directories=${directory}`, 'fsync=off']
  const args = ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])]
  const server = spawn(join(BIN, 'postgres'), args, { stdio: 'ignore', uid, gid })
  const stop = async () => {
    const ended = once(server, 'exit')
    // A fast shutdown: it does not wait for clients.
    server.kill('SIGINT')
    await ended
  }
  const direct = `host=127.0.0.1 port=${port} user=${USER} dbname=${USER}`
  try {
    for (let tries = 0; ; tries += 1) {
      const asked = await run('psql', [direct, '-c', 'select 1'], { timeoutMs: TIMEOUT_MS })
      if (asked.exitCode === 0) break
      if (tries === 100) throw new Error(`Postgres did not start: ${asked.stderr}`)
      await delay(100)
    }
    await runOrThrow('pgbench', ['--initialize', '--scale=10', '--quiet', direct], { timeoutMs: TIMEOUT_MS })
  } catch (error) {
    await stop()
    throw error
  }
  return {
    port,
    stop,
    bench: async (through, seconds) => {
      const to = `host=${through.name} hostaddr=127.0.0.1 port=${through.port} sslmode=require`
      const load = ['--select-only', '--client=8', '--jobs=1', `--time=${seconds}`]
      const said = await runOrThrow('pgbench', [...load, `${to} user=${USER} dbname=${USER}`], {
        timeoutMs: TIMEOUT_MS,
      })
      const [, amount] = /transactions actually processed: (\d+)/.exec(said) ?? []
      const [, failed = '0'] = /failed transactions: (\d+)/.exec(said) ?? []
      if (amount === undefined || failed !== '0') throw new Error(`pgbench failed: ${said}`)
      return { amount: Number(amount), seconds }
    },
  }
}

async function idOf(which: string): Promise<number> {
  return Number(await runOrThrow('id', [which, USER], { timeoutMs: TIMEOUT_MS }))
}
