// A server without an engine, as in a pod that is not privileged: its units are on a host that has joined, in a network
// namespace of its own, and its database is the operator's.

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { freePort } from '../../src/lib/free-port.ts'
import { setHostState } from '../../src/store/hosts.ts'
import { baseEnvironment, Berth, eventually, makeDataDir, nameDataDir } from '../support/berth.ts'
import { createUnit, destroyAll, exec } from '../support/berth-units.ts'
import { clearAfterwards } from '../support/clear-afterwards.ts'
import { withDatabaseAt } from '../support/host-invariants.ts'
import { joinAs, useMachine } from '../support/host-lab.ts'
import { makeTeam } from '../support/make.ts'
import { useOwnPostgres } from '../support/own-postgres.ts'
import { callAs } from '../support/unit-calls.ts'
import { project } from '../support/clients.ts'

/** What the chart's pod has, and no more. */
const CAPABILITIES = ['chown', 'dac_override', 'fowner', 'kill', 'setgid', 'setpcap', 'setuid']
const IN_A_POD = [
  'setpriv',
  `--bounding-set=-all,${CAPABILITIES.map((name) => `+${name}`).join(',')}`,
  '--no-new-privs',
  '--',
]

const postgres = useOwnPostgres()
const path = nameDataDir()
const berth = new Berth(path, undefined, null, IN_A_POD)
const settings: Record<string, string> = { BERTH_ROLE: 'server' }
clearAfterwards(path)
beforeAll(async () => {
  const data = await makeDataDir(path, { isEmpty: true })
  settings['DATABASE_URL'] = postgres.url()
  for (const name of ['BERTH_HOSTS_ADDRESS', 'BERTH_METRICS'])
    settings[name] = `0.0.0.0:${await freePort('0.0.0.0')}`
  return async () => {
    if (berth.wasStarted && !berth.hasEnded) expect(await berth.pressCtrlC()).toBe(0)
    await data.remove()
  }
})
const east = useMachine('east', 44, { BERTH_ISOLATION: 'runc' })
afterAll(async () => void (berth.wasStarted && (await destroyAll(berth))))

const nano = { image: 'berth.local/debian:12', size: 'nano' }
let unit: Unit

async function health(): Promise<{ status: number; body: Record<string, unknown> }> {
  const url = `http://127.0.0.1:${settings['BERTH_METRICS']?.split(':')[1]}/healthz`
  const response = await fetch(url)
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

it('a server without an engine starts without privileges, and its processes have none', async () => {
  await berth.start(settings)
  expect(berth.output).toContain('on hosts that join')
  for (const role of ['engine', 'gateway']) expect(await berth.pidOf(role)).toBe(null)
  const status = await readFile(`/proc/${await berth.pidOf('server')}/status`, 'utf8')
  expect(status).toMatch(/^CapEff:\t0+$/m)
  expect(status).not.toMatch(/^Uid:\t0/m)
})

it('a server without an engine says in doctor and health that units are elsewhere, and refuses them until a host is there', async () => {
  const env = baseEnvironment(path, settings)
  const { stdout } = await promisify(execFile)(process.execPath, [`${project}/src/main.ts`, 'doctor'], {
    env,
  })
  expect(stdout).toContain('role: a server without an engine')
  expect(stdout).not.toContain('runc:')
  expect(await health()).toMatchObject({ status: 503, body: { engine: false, hosts: [] } })
  const refused = await berth.call('POST', '/v1/units', { spec: { ...nano, name: 'early' } })
  expect(refused).toMatchObject({ status: 503, body: { error: { code: 'unavailable' } } })
})

it('a host that joins a server without an engine gets its units', async () => {
  await joinAs(berth, settings, east)
  unit = await eventually(async () => await createUnit(berth, { ...nano, name: 'far' }))
  expect((await exec(berth, unit, ['echo', 'here'])).stdout).toBe('here\n')
  await eventually(async () =>
    expect(await health()).toMatchObject({ status: 200, body: { engine: true, hosts: [{ name: 'east' }] } }),
  )
})

it('a server without an engine that starts again goes on with the units of its hosts', async () => {
  const before = (await berth.call<Unit>('GET', `/v1/units/${unit.id}`)).body
  await berth.start(settings)
  await eventually(async () => expect((await exec(berth, unit, ['echo', 'on'])).stdout).toBe('on\n'))
  expect((await berth.call<Unit>('GET', `/v1/units/${unit.id}`)).body).toMatchObject({
    state: 'running',
    startedAt: before.startedAt,
  })
})

it('the only host of a server without an engine gets no new teams while it is drained, as by a cordon', async () => {
  const drain = async (from: 'ready' | 'draining', to: 'ready' | 'draining') =>
    await withDatabaseAt(
      postgres.url(),
      async (db) => await setHostState(db, { id: unit.host.id, from: [from], to, at: new Date() }),
    )
  await drain('ready', 'draining')
  const { key } = await withDatabaseAt(
    postgres.url(),
    async (db) => await makeTeam({ app: { db, clock: systemClock } }),
  )
  const owner = { berth, key }
  const body = { spec: { ...nano, name: 'late' } }
  await eventually(async () => {
    const made = await callAs<{ units: Unit[] }>(owner, 'POST', '/v1/units', body)
    for (const each of made.status === 201 ? made.body.units : [])
      await callAs(owner, 'DELETE', `/v1/units/${each.id}`)
    expect(made.status).toBe(503)
  }, 20_000)
  for (let again = 0; again < 5; again++)
    expect((await callAs(owner, 'POST', '/v1/units', body)).status).toBe(503)
  await drain('draining', 'ready')
  await eventually(async () => {
    const made = await callAs<{ units: Unit[] }>(owner, 'POST', '/v1/units', body)
    expect(made.status).toBe(201)
    await callAs(owner, 'DELETE', `/v1/units/${made.body.units[0]?.id}`)
  }, 20_000)
})
