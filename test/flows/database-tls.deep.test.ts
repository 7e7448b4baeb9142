// Two servers on a Postgres of the operator's that is reached by TLS with a password, and that fails over to a standby. They are
// real processes; their host's engine is in memory.

import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { Berth as Client } from '../../packages/sdk/src/index.ts'
import { eventually } from '../support/berth.ts'
import { killSupervisor } from '../support/kill.ts'
import { type OneServer, useServerPair } from '../support/server-pair.ts'
import { useTlsPostgres } from '../support/tls-postgres.ts'

const postgres = useTlsPostgres()
const pair = useServerPair(postgres, () => postgres.url())
const nano = { image: 'berth.local/debian:12', size: 'nano', sleep: 'never' } as const

const clientOf = ({ url }: OneServer) => new Client({ url, apiKey: pair.key() })
const other = async () => {
  const leader = await pair.leader()
  return pair.servers.find((each) => each !== leader) ?? leader
}

it('servers use a database by TLS alone, with a password and without the rights of a superuser', async () => {
  const client = clientOf(await other())
  const unit = await eventually(async () => await client.units.create({ name: 'one', ...nano }), 60_000)
  expect((await unit.exec(['echo', 'on'])).stdout).toBe('on\n')
  const [row] = await postgres.ask<{ plain: number; tls: number; version: string }>(
    `select count(*) filter (where not ssl)::int as plain, count(*) filter (where ssl)::int as tls,
      current_setting('server_version') as version from pg_stat_ssl join pg_stat_activity using (pid)
      where usename = 'berth' and pid <> pg_backend_pid()`,
  )
  process.stdout.write(`Postgres ${row?.version}: ${row?.tls} connections by TLS\n`)
  expect(row?.plain).toBe(0)
  expect(row?.tls).toBeGreaterThan(2)
  const [role] = await postgres.ask<{ rolsuper: boolean }>(
    'select rolsuper from pg_roles where rolname = current_user',
  )
  expect(role?.rolsuper).toBe(false)
})

it('the other server takes over from one that is killed, by that database', async () => {
  const [leader, next] = [await pair.leader(), await other()]
  await killSupervisor(leader.berth)
  await eventually(async () => await clientOf(next).units.create({ name: 'two', ...nano }), 30_000)
  expect(await pair.leader()).toBe(next)
  await leader.berth.start(leader.settings)
})

it('a failover of the database loses nothing that was answered, and calls go on', async () => {
  const client = clientOf(await pair.leader())
  const made: string[] = []
  const failed: string[] = []
  let isEnding = false
  const callers = Array.from({ length: 4 }, async (_, caller) => {
    for (let round = 0; !isEnding; round += 1)
      await client.units
        .create({ name: `made-${caller}-${round}`, ...nano })
        .then(
          ({ id }) => made.push(id),
          (error: unknown) => failed.push(String(error)),
        )
        .then(async () => await delay(100))
  })
  await delay(2000)
  const beganMs = performance.now()
  await postgres.failOver()
  const before = made.length
  await eventually(async () => expect(made.length).toBeGreaterThan(before + 4), 60_000)
  const tookMs = Math.round(performance.now() - beganMs)
  isEnding = true
  await Promise.all(callers)
  process.stdout.write(`creates went on ${tookMs} ms after the failover began; ${failed.length} failed\n`)
  const rows = await postgres.ask<{ id: string }>(`select id from units where state = 'running'`)
  const there = new Set(rows.map(({ id }) => id))
  expect(made.filter((id) => !there.has(id))).toEqual([])
  expect(failed).toEqual([])
})
