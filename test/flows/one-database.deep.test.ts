// Berth with the operator's own Postgres: the database is unavailable for a while (reliability F15), and a second Berth uses
// the same database, next to the first or after it (F16).

import { execFile } from 'node:child_process'
import { copyFile, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { lockFile } from '../../src/lib/file-lock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { openDatabase } from '../../src/store/db.ts'
import { verifyLedgerOfTeam } from '../../src/store/verify-ledger.ts'
import { Berth, eventually, makeDataDir } from '../support/berth.ts'
import { createUnit, destroyAll, exec } from '../support/berth-units.ts'
import { cleanHost } from '../support/host-state.ts'
import { send } from '../support/patient-client.ts'
import { type Published, publish, unitOf } from '../support/published.ts'
import { useOwnPostgres } from '../support/own-postgres.ts'
import { useBerth } from '../support/use-berth.ts'

const run = promisify(execFile)

const postgres = useOwnPostgres()
const settings = () => ({ DATABASE_URL: postgres.url() })
const berth = useBerth(settings)
let site: Published

beforeAll(async () => {
  const spec = {
    name: 'site',
    image: 'berth.local/python:3.11',
    cmd: ['python3', '-m', 'http.server', '8000', '--bind', '0.0.0.0', '--directory', '/srv'],
    files: { '/srv/index.html': 'the page' },
    ports: [8000],
    sleep: 'never',
  }
  site = await publish(berth, spec, { port: 8000, protocol: 'http', mode: 'public' })
  await eventually(async () => expect(await visit()).toBe('the page'))
})

async function visit(): Promise<string> {
  const args = [
    '--silent',
    '--show-error',
    '--fail',
    '--insecure',
    '--max-time',
    '10',
    '--connect-to',
    '::127.0.0.1:',
  ]
  return (await run('curl', [...args, `${site.url}/index.html`])).stdout
}

const leader = async () =>
  (await postgres.ask<{ epoch: number; holder: string }>('select epoch, holder from leaders'))[0]

describe('while the database is unavailable', () => {
  const AWAY_MS = 25_000
  const DRAINED_WITHIN_MS = 120_000

  it('visits are served and API calls get 503; afterwards everything continues and the ledger is correct', async () => {
    await exec(berth, site.unit, ['sh', '-c', 'echo here > /dev/shm/mark'])
    const half = berth.call('POST', '/v1/units', {
      spec: { name: 'half', image: 'berth.local/debian:12', size: 'nano' },
      wait: false,
    })
    expect((await half).status).toBe(201)
    await postgres.stop()
    const untilMs = performance.now() + AWAY_MS
    const refusals = []
    while (performance.now() < untilMs) {
      expect(await visit()).toBe('the page')
      refusals.push(await send(berth, { method: 'GET', path: `/v1/units/${site.unit.id}` }))
      refusals.push(await send(berth, { method: 'POST', path: `/v1/units/${site.unit.id}/stop` }))
      await delay(500)
    }
    for (const refusal of refusals) {
      expect(refusal).toMatchObject({
        kind: 'answered',
        status: 503,
        retryAfterMs: expect.any(Number),
        body: { error: { code: 'unavailable' } },
      })
    }

    await postgres.start()
    await eventually(async () => {
      const [row] = await postgres.ask<{ state: string }>(`select state from units where name = 'half'`)
      expect(row?.state).toBe('running')
      const made = await createUnit(berth, { name: 'after', image: 'berth.local/debian:12', size: 'nano' })
      expect((await berth.call('DELETE', `/v1/units/${made.id}`)).status).toBe(200)
    }, DRAINED_WITHIN_MS)
    expect((await exec(berth, site.unit, ['cat', '/dev/shm/mark'])).stdout).toBe('here\n')
    expect(await visit()).toBe('the page')
    await expectLedger()
  })

  async function expectLedger(): Promise<void> {
    const db = openDatabase(postgres.url(), silentLog)
    const teams = await db.selectFrom('teams').select('id').execute()
    for (const { id } of teams) expect(await verifyLedgerOfTeam(db, id)).toEqual([])
    await db.destroy()
  }
})

it('the engine holds a lock on its data directory', async () => {
  const owner = String(await berth.pidOf('engine'))
  expect(await lockFile(join(berth.dataDir, 'engine.lock'))).toEqual({ owner })
})

describe('a second Berth on the same database', () => {
  let other: Awaited<ReturnType<typeof makeDataDir>>
  const started: Berth[] = []
  /** Stopped processes of the first Berth. */
  const standing: number[] = []
  beforeAll(async () => {
    other = await makeDataDir()
    // Like an installation restored from a backup on another host.
    const [from, to] = [berth.dataDir, other.path].map((path) => join(path, 'roles/server'))
    await mkdir(to ?? '', { recursive: true })
    await copyFile(join(from ?? '', 'secret.key'), join(to ?? '', 'secret.key'))
  })
  // After a failed test the first Berth may still be stopped and the second running with units.
  afterAll(async () => {
    goOn()
    const left = started.filter(({ hasEnded }) => !hasEnded)
    for (const second of left) {
      await destroyAll(second).catch(() => {})
      await second.pressCtrlC()
    }
    await other.remove()
    // The first Berth has lost its leadership. It takes it back so that it can be shut down in order.
    if (left.length > 0) await berth.pressCtrlC()
    if (berth.hasEnded) await berth.start(settings())
  })

  function startOther(): Berth {
    const second = new Berth(other.path).launch(settings())
    started.push(second)
    return second
  }

  function goOn(): void {
    for (const pid of standing.splice(0)) process.kill(pid, 'SIGCONT')
  }

  it('is refused while the first one is alive, which continues undisturbed', async () => {
    // The first was silent while the database was away, and a newcomer could have taken over.
    await eventually(async () => {
      const [row] = await postgres.ask<{ s: number }>(
        'select extract(epoch from clock_timestamp() - renewed_at)::float8 as s from leaders',
      )
      expect(row?.s).toBeLessThan(5)
    })
    const before = await leader()
    const second = startOther()
    expect(await second.exitCode()).toBe(1)
    expect(second.output).toMatch(/Another Berth \(its instance is \w{4}\) uses this database/)
    expect(await leader()).toEqual(before)
    expect((await exec(berth, site.unit, ['cat', '/dev/shm/mark'])).stdout).toBe('here\n')
  })

  it('takes over from a stopped one, which changes nothing when it continues', async () => {
    const before = await leader()
    const roles = await Promise.all(['engine', 'server', 'gateway'].map((role) => berth.pidOf(role)))
    standing.push(...[await berth.supervisorPid(), ...roles].filter((pid) => pid !== null))
    for (const pid of standing) process.kill(pid, 'SIGSTOP')
    const second = await startOther().ready()
    const after = await leader()
    expect(after?.epoch).toBeGreaterThan(before?.epoch ?? 0)
    expect(after?.holder).not.toBe(before?.holder)
    const id = (await createUnit(second, { name: 'its', image: 'berth.local/debian:12', size: 'nano' })).id
    const read = () =>
      postgres.ask(`select id, state, stopped_reason, generation, revision, frozen from units order by id`)
    const units = await read()

    goOn()
    const log = () => readFile(join(berth.dataDir, 'logs/berth.log'), 'utf8')
    await eventually(async () => expect(await log()).toContain('uses this database'))
    expect(await log()).toMatch(/Another server has taken the lead|the server .*ended/)
    expect(await leader()).toMatchObject({ holder: after?.holder, epoch: after?.epoch })
    expect(await read()).toEqual(units)
    expect(await berth.pressCtrlC()).toBe(0)

    expect((await second.call('DELETE', `/v1/units/${id}`)).status).toBe(200)
    expect(await second.pressCtrlC()).toBe(0)
    await eventually(async () => expect(await second.hostState()).toEqual(cleanHost))
    // The first takes leadership back. Its unit is on its own host, about which the second one said nothing: it runs on.
    await berth.start(settings())
    expect(await unitOf(berth, site.unit)).toMatchObject({ state: 'running' })
    expect((await exec(berth, site.unit, ['cat', '/dev/shm/mark'])).stdout).toBe('here\n')
    expect((await exec(berth, site.unit, ['cat', '/srv/index.html'])).stdout).toBe('the page')
  })
})
