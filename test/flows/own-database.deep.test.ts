// With DATABASE_URL, Berth uses that database and does not start its own.

import { chmod, cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../src/lib/log.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { type Postgres, startPostgres } from '../../src/supervisor/postgres.ts'
import { Berth } from '../support/berth.ts'
import { createUnit, exec, listUnits } from '../support/berth-units.ts'
import { useBerth } from '../support/use-berth.ts'

const PASSWORD = 'canary-of-the-database'

let databaseDir: string
let postgres: Postgres
let url: string

beforeAll(async () => {
  databaseDir = await mkdtemp('/run/berth-test-')
  await chmod(databaseDir, 0o711)
  postgres = await startPostgres({
    dataDir: join(databaseDir, 'data'),
    socketDir: join(databaseDir, 'socket'),
    log: silentLog,
  })
  url = postgres.url('berth').replace('berth@', `berth:${PASSWORD}@`)
  return async () => {
    await postgres.stop()
    await rm(databaseDir, { recursive: true })
  }
})

const berth = useBerth(() => ({ DATABASE_URL: url }))

describe('with DATABASE_URL', () => {
  it('units can be created and used, and no embedded Postgres is running', async () => {
    const unit = await createUnit(berth, { name: 'one', image: 'berth.local/debian:12', size: 'nano' })
    expect((await exec(berth, unit, ['echo', 'hello'])).stdout).toBe('hello\n')
    const { processes } = await berth.hostState()
    expect(processes.filter((line) => line.includes('bin/postgres'))).toEqual([])
  })

  it('the password of the database is not in command lines, environments or the log', async () => {
    for (const role of ['engine', 'server', 'gateway']) {
      const pid = await berth.pidOf(role)
      expect(pid).not.toBeNull()
      for (const file of ['cmdline', 'environ']) {
        expect(await readFile(`/proc/${pid}/${file}`, 'latin1')).not.toContain(PASSWORD)
      }
    }
    expect(await readFile(join(berth.dataDir, 'logs/berth.log'), 'utf8')).not.toContain(PASSWORD)
    expect(berth.output).not.toContain(PASSWORD)
  })
})

it('a copy of the data directory is refused while the original is running, and does not affect it', async () => {
  const copy = await mkdtemp('/var/tmp/berth-copy-')
  await cp(join(berth.dataDir, 'instance.json'), join(copy, 'instance.json'))
  await cp(join(berth.dataDir, 'machines'), join(copy, 'machines'), { recursive: true })
  const { id } = await berth.instance()
  const before = await readdir(`/run/berth/${id}`)
  const copied = new Berth(copy).launch({ DATABASE_URL: url })
  expect(await copied.exitCode()).toBe(1)
  expect(copied.output).toContain(`The instance ${id} is that of ${berth.dataDir}`)
  expect(copied.output).toContain(`process ${await berth.supervisorPid()}`)
  await rm(copy, { recursive: true })
  expect(await readdir(`/run/berth/${id}`)).toEqual(before)
  const [unit] = await listUnits(berth)
  if (unit) expect((await exec(berth, unit, ['echo', 'hello'])).stdout).toBe('hello\n')
})

describe('a database that does not know the existing units', () => {
  const npm = async (...args: string[]) =>
    await runOrThrow('npm', ['run', '--silent', ...args], {
      timeoutMs: 60_000,
      env: { ...process.env, BERTH_DATA_DIR: berth.dataDir },
    })

  it('is refused unless the operator accepts it, and then no disk is lost and the old database still works', async () => {
    const [unit] = await listUnits(berth)
    if (!unit) throw new Error('the unit is gone')
    await exec(berth, unit, ['sh', '-c', 'echo kept > /root/kept'])
    expect(await berth.pressCtrlC()).toBe(0)
    const admin = new pg.Client({ connectionString: postgres.url('postgres', 'postgres') })
    await admin.connect()
    await admin.query('create database other owner berth')
    await admin.end()
    const other = url.replace('/berth?', '/other?')

    const { id } = await berth.instance()
    await expect(berth.start({ DATABASE_URL: other })).rejects.toThrow(
      new RegExp(`/other does not know this instance of Berth \\(${id}\\)[^]*BERTH_ACCEPT_DATABASE=${id}`),
    )
    await berth.start({ DATABASE_URL: other, BERTH_ACCEPT_DATABASE: id })
    expect(await listUnits(berth)).toEqual([])
    expect(await npm('aside', '--', 'list')).toMatch(new RegExp(`${unit.id} .*knows of no such unit`))
    expect(await berth.pressCtrlC()).toBe(0)

    // credentials.json has the key of the other database. Without the file a new key is created.
    await rm(join(berth.dataDir, 'credentials.json'))
    await berth.start({ DATABASE_URL: url })
    expect((await exec(berth, unit, ['cat', '/root/kept'])).stdout).toBe('kept\n')
    expect(await npm('aside', '--', 'list')).not.toContain(unit.id)
  })
})
