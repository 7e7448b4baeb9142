// DATABASE_URL: Berth uses that database and starts none of its own.

import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../src/lib/log.ts'
import { type Postgres, startPostgres } from '../../src/supervisor/postgres.ts'
import { Berth, eventually, makeDataDir } from '../support/berth.ts'
import { createUnit, destroyAll, exec } from '../support/berth-units.ts'
import { cleanHost } from '../support/host-state.ts'

const PASSWORD = 'canary-of-the-database'

let data: Awaited<ReturnType<typeof makeDataDir>>
let databaseDir: string
let postgres: Postgres
let berth: Berth

beforeAll(async () => {
  data = await makeDataDir()
  databaseDir = await mkdtemp('/run/berth-test-')
  await chmod(databaseDir, 0o711)
  postgres = await startPostgres({
    dataDir: join(databaseDir, 'data'),
    socketDir: join(databaseDir, 'socket'),
    log: silentLog,
  })
  const url = postgres.url('berth').replace('berth@', `berth:${PASSWORD}@`)
  berth = await new Berth(data.path, { DATABASE_URL: url }).ready()
})

afterAll(async () => {
  await destroyAll(berth)
  expect(await berth.pressCtrlC()).toBe(0)
  await eventually(async () => expect(await berth.hostState()).toEqual(cleanHost))
  await postgres.stop()
  await rm(databaseDir, { recursive: true })
  await data.remove()
})

describe('with DATABASE_URL', () => {
  it('units are made and used, and no other Postgres runs', async () => {
    const unit = await createUnit(berth, { name: 'one', image: 'berth.local/debian:12', size: 'nano' })
    expect((await exec(berth, unit, ['echo', 'hello'])).stdout).toBe('hello\n')
    const { processes } = await berth.hostState()
    expect(processes.filter((line) => line.includes('bin/postgres'))).toEqual([])
  })

  it('its password is in no argument and no environment of a role, nor in the log', async () => {
    for (const role of ['engine', 'server', 'gateway']) {
      const pid = await berth.pidOf(role)
      expect(pid).not.toBeNull()
      for (const file of ['cmdline', 'environ']) {
        expect(await readFile(`/proc/${pid}/${file}`, 'latin1')).not.toContain(PASSWORD)
      }
    }
    expect(await readFile(join(data.path, 'logs/berth.log'), 'utf8')).not.toContain(PASSWORD)
    expect(berth.output).not.toContain(PASSWORD)
  })
})
