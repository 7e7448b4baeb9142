// What the first start on a new data directory makes at a cost, made once for a run of the tests and copied into each
// new one: Postgres' program and an empty cluster, and the compiled code of the processes. It saves some five seconds of
// processor time for each installation. Nothing in it knows an instance.

import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { silentLog } from '../../src/lib/log.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { startPostgres } from '../../src/supervisor/postgres.ts'
import { Berth, makeDataDir } from './berth.ts'
import { PREPARED_VARIABLE } from './instances.ts'

/** Called by vitest once a run, after clear-host.ts; answers the teardown. */
export async function setup(): Promise<() => Promise<void>> {
  const data = await makeDataDir(undefined, { isEmpty: true })
  const prepared = `${data.path}-prepared`
  await mkdir(prepared, { mode: 0o700 })
  await makeCluster(data.path)
  await copy(join(data.path, 'postgres'), join(prepared, 'postgres'))
  // Each process compiles what it loads.
  const berth = await new Berth(data.path).start()
  await berth.pressCtrlC()
  for (const name of await readdir(join(data.path, 'roles'))) {
    const role = join(data.path, 'roles', name)
    for (const kept of await readdir(role))
      if (kept !== 'compiled') await rm(join(role, kept), { recursive: true })
  }
  await rename(join(data.path, 'roles'), join(prepared, 'roles'))
  await data.remove()
  process.env[PREPARED_VARIABLE] = prepared
  return async () => {
    delete process.env[PREPARED_VARIABLE]
    await rm(prepared, { recursive: true })
  }
}

async function makeCluster(dataDir: string): Promise<void> {
  const socketDir = await mkdtemp('/run/berth-test-')
  await chmod(socketDir, 0o711)
  await (await startPostgres({ dataDir, socketDir: join(socketDir, 'socket'), log: silentLog })).stop()
  await rm(socketDir, { recursive: true })
}

async function copy(from: string, to: string): Promise<void> {
  await runOrThrow('cp', ['--archive', '--reflink=auto', '--no-target-directory', from, to], {
    timeoutMs: 60_000,
  })
}
