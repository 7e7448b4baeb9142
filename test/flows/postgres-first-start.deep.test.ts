// The first start of a PostgreSQL with a volume, in each class: what it has is exactly what was asked for, and a start that
// ends in between leaves nothing that a later one takes for a cluster.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ForkResult } from '../../src/contract/fork.ts'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { isolationClasses } from '../../src/engine/engine.ts'
import { createUnit, destroyAll, exec } from '../support/berth-units.ts'
import { partOf, testSeed } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const DATA = '/var/lib/postgresql/data'

/** Every database with its owner, encoding, collation and rights, and every role that is not PostgreSQL's own. */
const LOOK =
  'select datname, pg_get_userbyid(datdba), pg_encoding_to_char(encoding), datcollate, datctype, datacl, datistemplate, ' +
  'datallowconn, datconnlimit from pg_database order by 1; ' +
  "select rolname, rolsuper, rolcanlogin, rolpassword is not null from pg_authid where rolname !~ '^pg_' order by 1"

const templates = ['template0|f', 'template1|t'].map((line) => {
  const [name, connects] = line.split('|')
  return `${name}|postgres|UTF8|C.UTF-8|C.UTF-8|{=c/postgres,postgres=CTc/postgres}|t|${connects}|-1`
})
const own = (name: string, owner: string) => `${name}|${owner}|UTF8|C.UTF-8|C.UTF-8||f|t|-1`
const asked = (hasPassword: 't' | 'f') =>
  [own('shop', 'keeper'), own('postgres', 'postgres'), ...templates].toSorted().join('\n') +
  `\nkeeper|t|t|${hasPassword}\npostgres|t|t|f\n`

/** What the entrypoint finds in place of a program: it ends the whole start, with all its processes. */
const trouble = {
  // Of what the single-user server is told, only the first statement comes through.
  setpriv: 'sed -n 1p | /usr/bin/setpriv "$@"; kill -9 0',
  // Everything is done but the last step.
  mv: 'kill -9 0',
}

const START =
  'export POSTGRES_USER=keeper POSTGRES_DB=shop POSTGRES_PASSWORD=secret; exec setsid --wait berth-entrypoint postgres'
const FRESH = `rm -rf ${DATA}/15* && mkdir ${DATA}/15.prepared &&
tar --extract --file=/usr/share/berth/prepared.tar --directory=${DATA}/15.prepared`

describe.each(partOf(isolationClasses, 1, testSeed))('with %s', (isolation) => {
  const berth = useBerth({ BERTH_ISOLATION: isolation })
  let idle: Unit

  beforeAll(async () => {
    idle = await createUnit(berth, {
      name: 'idle',
      image: 'berth.local/postgres:15',
      cmd: ['sleep', 'infinity'],
      volume: { mount: DATA, gb: 1 },
    })
  }, 500_000)
  afterAll(async () => await destroyAll(berth))

  const said = async (unit: Unit, script: string): Promise<string> => {
    const { exitCode, stdout, stderr } = await exec(berth, unit, ['bash', '-c', script])
    expect([exitCode, stderr]).toEqual([0, ''])
    return stdout
  }
  const psql = async (unit: Unit, user: string, sql: string) =>
    await said(unit, `psql -U ${user} -d postgres -XqAt <<'END'\n${sql}\nEND`)

  /** Of a server that a command began, until it answers. */
  const ready = 'until pg_isready --quiet --host=127.0.0.1; do sleep 0.05; done'

  it.each(Object.entries(trouble))(
    'a first start that ends in %s leaves nothing that the next one takes for a cluster',
    async (program, script) => {
      await said(idle, `ls -A ${DATA} | grep -q prepared || { ${FRESH}; }`)
      await said(
        idle,
        `rm -rf /opt/trouble && mkdir /opt/trouble && cat >/opt/trouble/${program} <<'END'
#!/bin/sh
${script}
END
chmod +x /opt/trouble/${program}`,
      )
      const broken = await exec(berth, idle, [
        'bash',
        '-c',
        `(PATH=/opt/trouble:$PATH; ${START}) >/dev/null 2>&1`,
      ])
      expect(broken.exitCode).not.toBe(0)
      expect(await said(idle, `ls -A ${DATA}`)).toBe('15.prepared\n')
      await said(idle, `(${START}) >/root/log 2>&1 & ${ready}`)
      expect(await psql(idle, 'keeper', LOOK)).toBe(asked('t'))
      expect(await said(idle, `ls -A ${DATA}`)).toBe('15\n')
      expect(await said(idle, `cat ${DATA}/15/postgresql.auto.conf`)).toMatch(
        /^# Do not edit .*\n# It will be .*\n$/,
      )
      await said(
        idle,
        `kill -INT "$(head -n1 ${DATA}/15/postmaster.pid)"; while [ -e ${DATA}/15/postmaster.pid ]; do sleep 0.05; done; ${FRESH}`,
      )
    },
  )

  it('without a user and a database of its own it has none but postgres', async () => {
    const { id, ...unit } = await createUnit(berth, {
      name: 'plain',
      image: 'berth.local/postgres:15',
      volume: { mount: DATA, gb: 1 },
      healthcheck: { cmd: ['pg_isready', '--quiet', '--host=127.0.0.1'], timeoutMs: 60_000 },
    })
    const found = await psql({ id, ...unit }, 'postgres', LOOK)
    expect(found).toBe([own('postgres', 'postgres'), ...templates].join('\n') + '\npostgres|t|t|f\n')
  })

  it('a recipe has its database, user and nothing else, and keeps its data over a restart and in a fork', async () => {
    const answer = await berth.call<RunResult>('POST', '/v1/units', {
      recipe: 'postgres',
      name: 'db',
      params: { database: 'shop', user: 'keeper' },
      waitTimeoutMs: 120_000,
    })
    expect(answer.status, JSON.stringify(answer.body)).toBe(201)
    const [unit] = answer.body.units
    if (!unit) throw new Error('there is no unit')
    expect(await psql(unit, 'keeper', LOOK)).toBe(asked('t'))
    expect(await said(unit, `ls -A ${DATA}; stat -c '%U %a' ${DATA} ${DATA}/15`)).toBe(
      '15\npostgres 755\npostgres 700\n',
    )
    await psql(unit, 'keeper', 'create table kept as select 42 as n')
    expect((await berth.call('POST', `/v1/units/${unit.id}/stop`)).status).toBe(200)
    expect((await berth.call('POST', `/v1/units/${unit.id}/start`)).status).toBe(200)
    expect(await psql(unit, 'keeper', `select n from kept; ${LOOK}`)).toBe(`42\n${asked('t')}`)
    const fork = await berth.call<ForkResult>('POST', `/v1/units/${unit.id}/fork`, { name: 'copy' })
    expect(fork.status, JSON.stringify(fork.body)).toBe(201)
    const [copy] = fork.body.units
    if (!copy) throw new Error('a fork has no unit')
    expect(await psql(copy, 'keeper', `select n from kept; ${LOOK}`)).toBe(`42\n${asked('t')}`)
  })
})
