// Forks a real PostgreSQL while it is being written to, in each class: the copy starts cleanly with every acknowledged row,
// and the writer to the source is not disturbed (reliability F11). `npm test` covers one of the classes.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ForkResult } from '../../src/contract/fork.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { isolationClasses } from '../../src/engine/engine.ts'
import { eventually } from '../support/berth.ts'
import { createUnit, destroyAll, exec } from '../support/berth-units.ts'
import { expectInvariants } from '../support/host-invariants.ts'
import { partOf, testSeed } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const psql = (sql: string) => ['psql', '-U', 'postgres', '-qAtXc', sql]

/** One session that inserts row after row; each row is recorded once it is acknowledged. */
const WRITE = `
i=0
while [ ! -e /root/stop ]; do i=$((i + 1)); echo "insert into words (n) values ($i) returning n;"; done |
  psql -U postgres -qAtX -v ON_ERROR_STOP=1 | while read -r n; do echo "$n" >> /root/acknowledged; done
touch /root/stopped`

/** Counts acknowledged rows that are missing, then runs statements that would fail on a damaged table or index. */
const LOOK = `
sort /root/acknowledged > /root/noted
psql -U postgres -qAtXc 'select n from words' | sort > /root/rows
comm -23 /root/noted /root/rows | wc -l
wc -l < /root/noted
psql -U postgres -qAtX -v ON_ERROR_STOP=1 -c 'reindex table words' -c 'insert into words (n) values (0) returning n'`

describe.each(partOf(isolationClasses, 1, testSeed + 1))('with %s', (isolation) => {
  const berth = useBerth({ BERTH_ISOLATION: isolation })
  let source: Unit

  beforeAll(async () => {
    source = await createUnit(berth, {
      name: 'db',
      image: 'berth.local/postgres:15',
      size: 'medium',
      env: { POSTGRES_PASSWORD: 'correct horse' },
      healthcheck: { cmd: psql('select 1'), timeoutMs: 60_000 },
    })
    await said(source, ...psql('create table words (n bigint primary key, by int default pg_backend_pid())'))
  })
  afterAll(async () => {
    await destroyAll(berth)
    await expectInvariants(berth)
  })

  const said = async (unit: Unit, ...cmd: string[]): Promise<string> => {
    const { exitCode, stdout, stderr } = await exec(berth, unit, cmd)
    expect([exitCode, stderr]).toEqual([0, ''])
    return stdout.trim()
  }
  const acknowledged = async () => Number(await said(source, 'bash', '-c', 'wc -l < /root/acknowledged'))
  const untilMore = async (than: number) =>
    await eventually(async () => expect(await acknowledged()).toBeGreaterThan(than))

  it('forks of a database under load contain every acknowledged row, and its writer continues', async () => {
    await said(
      source,
      'bash',
      '-c',
      `touch /root/acknowledged; setsid bash -c '${WRITE}' > /root/trouble 2>&1 &`,
    )
    await untilMore(100)
    for (const name of ['first', 'second']) {
      const before = await acknowledged()
      const fork = await berth.call<ForkResult>('POST', `/v1/units/${source.id}/fork`, { name })
      expect(fork.status, JSON.stringify(fork.body)).toBe(201)
      const [copy] = fork.body.units
      if (!copy) throw new Error('a fork has no unit')
      expect(copy.state).toBe('running')
      const [missing, noted, last] = (await said(copy, 'bash', '-c', LOOK)).split('\n').map(Number)
      expect([missing, last]).toEqual([0, 0])
      expect(noted).toBeGreaterThanOrEqual(before)
      expect((await berth.call('DELETE', `/v1/units/${copy.id}`)).status).toBe(200)
      await untilMore(noted ?? 0)
    }
    await said(source, 'touch', '/root/stop')
    await eventually(async () => await said(source, 'test', '-e', '/root/stopped'), 60_000)
    expect(await said(source, 'cat', '/root/trouble')).toBe('')
    expect(await said(source, ...psql('select count(distinct by) from words'))).toBe('1')
  })
})
