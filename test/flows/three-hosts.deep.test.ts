// Three hosts under one domain and two servers, each in a network of its own. Visits come to a host that has not the unit; nodes of
// Kubernetes come and go (its part of the leader runs here, with an API server in memory); servers die, and lose each other.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type Connection, createConnection } from 'mysql2/promise'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import type { Unit } from '../../src/contract/unit.ts'
import { openApi } from '../../src/kubernetes/api.ts'
import { MINUTE, systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { openDatabase } from '../../src/store/db.ts'
import { setHostNode } from '../../src/store/host-nodes.ts'
import { listHosts, setHostState } from '../../src/store/hosts.ts'
import { type RunningMembership, startMembership } from '../../src/supervisor/kubernetes/membership.ts'
import { eventually } from '../support/berth.ts'
import { createUnit, exec, type Service } from '../support/berth-units.ts'
import { databaseClients, type DatabaseName, databaseUnits } from '../support/database-clients.ts'
import { type LabHost, useFleetLab } from '../support/fleet-lab.ts'
import { withDatabaseAt } from '../support/host-invariants.ts'
import { joinAs } from '../support/host-lab.ts'
import { killSupervisor } from '../support/kill.ts'
import { type FakeApiServer, startFakeApiServer } from '../support/kubernetes/fake-api-server.ts'
import { createKubeWorld, type KubeWorld, NAMESPACE } from '../support/kubernetes/world.ts'
import { useOwnPostgres } from '../support/own-postgres.ts'
import { freeze, type Published, publish, unitOf, waking } from '../support/published.ts'

const run = promisify(execFile)
const PASSWORD = 'correct horse'
const API_AWAY_MS = 10 * MINUTE

const postgres = useOwnPostgres()
const images = [
  'debian:12',
  'python:3.11',
  'postgres:15',
  'mariadb:10.11',
  'redis:7',
  'etcd:3.4',
  'rabbitmq:3',
]
const lab = useFleetLab(postgres, {
  names: ['east', 'west', 'north'],
  settings: { BERTH_ISOLATION: 'runc' },
  images,
})
const [east, , north] = lab.hosts as [LabHost, LabHost, LabHost]
const nano = { image: 'berth.local/debian:12', size: 'nano', sleep: 'never' }

const hostCalled = async (name: string) => {
  const found = (await withDatabaseAt(postgres.url(), listHosts)).find((host) => host.name === name)
  if (!found) throw new Error(`there is no host ${name}`)
  return found
}
const stateOf = async (name: string) => (await hostCalled(name)).state
const stateSoon = (name: string) =>
  expect.poll(async () => await stateOf(name), { timeout: 90_000, interval: 200 })

/** A new team whose units are there, since the others are drained meanwhile. */
async function teamOn(name: string): Promise<{ team: Service; unit: Unit }> {
  const others = lab.hosts.filter((host) => host.name !== name)
  const drain = async (from: 'ready' | 'draining', to: 'ready' | 'draining') => {
    for (const other of others) {
      const { id } = await hostCalled(other.name)
      await withDatabaseAt(
        postgres.url(),
        async (db) => await setHostState(db, { id, from: [from], to, at: new Date() }),
      )
    }
  }
  const { id } = await hostCalled(name)
  await drain('ready', 'draining')
  try {
    return await eventually(async () => {
      const team = await lab.newTeam()
      const unit = await createUnit(team, { ...nano, name: 'first' })
      if (unit.host.id === id) return { team, unit }
      await team.call('DELETE', `/v1/units/${unit.id}`)
      throw new Error(`a unit was placed beside ${name}`)
    })
  } finally {
    await drain('draining', 'ready')
  }
}

const startedAt = async (team: Service, { id }: Unit) =>
  (await team.call<Unit>('GET', `/v1/units/${id}`)).body.startedAt
const says = async (team: Service, unit: Unit) => (await exec(team, unit, ['echo', 'on'])).stdout

async function curl({ url }: Published, ...args: string[]): Promise<string> {
  const shown = ['--write-out', ' by %{http_version}']
  const { stdout } = await run('curl', [
    '--silent',
    '--fail',
    '--cacert',
    lab.trust().caFile,
    ...shown,
    ...args,
    `${url}/`,
  ])
  return stdout
}

let team: Service
let first: Unit
let web: Published
/** The same as `curl`, as a plain visit. */
const visit = async () => await curl(web, '--http1.1')

beforeAll(async () => {
  ;({ team, unit: first } = await teamOn('west'))
  web = await publish(
    team,
    {
      name: 'web',
      image: 'berth.local/python:3.11',
      cmd: ['python3', '/srv/server.py'],
      files: {
        '/srv/server.py': await readFile(new URL('../support/servers/web.py', import.meta.url), 'utf8'),
        '/srv/site/index.html': 'the page',
      },
      env: { PORT: '8000' },
      ports: [8000],
    },
    { port: 8000, protocol: 'http' },
  )
  await eventually(async () => expect(await visit()).toBe('the page by 1.1'))
}, 900_000)

describe('a visit that comes to the gateway of another host', () => {
  it.each([
    ['HTTP/1.1', visit, 'the page by 1.1'],
    ['HTTP/2', async () => await curl(web, '--http2'), 'the page by 2'],
    ['a WebSocket', converse, 'over over'],
  ] as const)('goes by %s, and wakes its unit', async (_what, ask, answer) => {
    for (const host of [east, north]) {
      lab.visitAt(host)
      await freeze(team, web.unit)
      expect(await waking(team, web.unit, 'frozen', ask)).toBe(answer)
    }
  })

  async function converse(): Promise<string> {
    const socket = new WebSocket(`${web.url.replace('https', 'wss')}/socket`, { ca: lab.trust().ca })
    try {
      await once(socket, 'open')
      socket.send('over ')
      const [said] = (await once(socket, 'message')) as [Buffer]
      return said.toString().trim()
    } finally {
      socket.close()
    }
  }

  it.each(databaseClients.filter(({ client }) => client !== 'ioredis' && client !== 'etcd3'))(
    'is that of $client, and wakes its unit',
    async ({ of, ask }) => {
      const { protocol, port, spec } = databaseUnits[of satisfies DatabaseName]
      const at = await publish(team, { ...spec, name: of, ports: [port] }, { port, protocol })
      lab.visitAt(east)
      await eventually(async () => expect(await ask(at, lab.trust())).toBe('done'))
      lab.visitAt(north)
      await freeze(team, at.unit)
      expect(await waking(team, at.unit, 'frozen', async () => await ask(at, lab.trust()))).toBe('done')
      await team.call('DELETE', `/v1/units/${at.unit.id}`)
    },
    600_000,
  )

  it('is that of psql, whose query is cancelled by a request that comes to a third host', async () => {
    const env = { POSTGRES_PASSWORD: PASSWORD }
    const shop = await publish(
      team,
      { name: 'shop', image: 'berth.local/postgres:15', ports: [5432], env },
      { port: 5432, protocol: 'postgres' },
    )
    const url = `${shop.url.replace('://', '://postgres@')}/postgres?sslmode=verify-full&sslrootcert=${lab.trust().caFile}`
    const options = { env: { ...process.env, PGPASSWORD: PASSWORD } }
    const ask = async (query: string) =>
      (await run('psql', [url, '-X', '-t', '-A', '-c', query], options)).stdout.trim()
    lab.visitAt(east)
    await eventually(async () => expect(await ask('select 6 * 7')).toBe('42'))
    await freeze(team, shop.unit)
    expect(await waking(team, shop.unit, 'frozen', async () => await ask('select 6 * 7'))).toBe('42')
    const busy = spawn('psql', [url, '-X', '-c', 'select pg_sleep(120)'], {
      ...options,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let said = ''
    busy.stderr.on('data', (chunk) => (said += String(chunk)))
    const ended = once(busy, 'close')
    const active =
      "select count(*) from pg_stat_activity where query like 'select pg_sleep(1%' and state = 'active'"
    await eventually(async () => expect(await ask(active)).toBe('1'))
    lab.visitAt(north)
    busy.kill('SIGINT')
    await ended
    expect(said).toContain('canceling statement due to user request')
    await team.call('DELETE', `/v1/units/${shop.unit.id}`)
  }, 600_000)

  it('is that of mysql2, whose query is killed by a session that comes to a third host', async () => {
    const env = {
      MARIADB_ROOT_PASSWORD: PASSWORD,
      MARIADB_USER: 'keeper',
      MARIADB_PASSWORD: PASSWORD,
      MARIADB_DATABASE: 'shop',
    }
    const till = await publish(
      team,
      { name: 'till', image: 'berth.local/mariadb:10.11', ports: [3306], env },
      { port: 3306, protocol: 'mysql' },
    )
    const open = async (): Promise<Connection> => {
      const connection = await createConnection({
        stream: () => connect(till.port, '127.0.0.1'),
        host: till.host,
        user: 'keeper',
        password: PASSWORD,
        database: 'shop',
        ssl: { ca: lab.trust().ca, verifyIdentity: true },
      } as Parameters<typeof createConnection>[0])
      connection.on('error', () => {})
      return connection
    }
    lab.visitAt(east)
    const busy = await eventually(open)
    const beganMs = performance.now()
    // Depending on its version, the interrupted sleep returns a result or an error.
    const interrupted = busy.query('select sleep(120)').catch(() => {})
    await delay(1000)
    lab.visitAt(north)
    const other = await open()
    await other.query(`KILL QUERY ${busy.threadId}`)
    await interrupted
    expect(performance.now() - beganMs).toBeLessThan(60_000)
    for (const each of [busy, other]) each.destroy()
    await team.call('DELETE', `/v1/units/${till.unit.id}`)
  }, 600_000)
})

describe('with their nodes in a cluster', () => {
  let fake: FakeApiServer
  let world: KubeWorld
  let membership: RunningMembership

  /** Of which the host of its name is, as if its pod had joined. */
  const makeNode = async (name: string) => {
    await world.makeNode(name)
    const node = { name, uid: (await world.uidOf(name)) ?? '' }
    await withDatabaseAt(postgres.url(), async (db) => await setHostNode(db, { name, node }))
  }

  beforeAll(async () => {
    fake = await startFakeApiServer()
    world = await createKubeWorld(fake.access)
    const api = openApi(fake.access)
    const db = openDatabase(postgres.url(), silentLog)
    for (const { name } of lab.hosts) await makeNode(name)
    await world.makeBudget()
    membership = await startMembership({
      dataDir: lab.servers[0].berth.dataDir,
      api,
      namespace: NAMESPACE,
      door: { host: '127.0.0.1', port: 0 },
      link: { host: '0.0.0.0', port: 7077 },
      anchorImage: 'pause',
      db,
      clock: systemClock,
      log: silentLog,
    })
    return async () => {
      await membership.stop()
      api.close()
      await world.close()
      await fake.close()
      await db.destroy()
    }
  })

  it('a host whose node is cordoned takes no new team, and its units go on, sleep and wake', async () => {
    lab.visitAt(east)
    onTestFinished(async () => {
      await world.cordon('west', false)
      await stateSoon('west').toBe('ready')
    })
    const began = await startedAt(team, web.unit)
    await world.cordon('west', true)
    await stateSoon('west').toBe('draining')
    await freeze(team, web.unit)
    expect(await waking(team, web.unit, 'frozen', visit)).toBe('the page by 1.1')
    expect([await says(team, first), await startedAt(team, web.unit)]).toEqual(['on\n', began])
    const { id } = await hostCalled('west')
    const isElsewhere = async () => {
      const other = await lab.newTeam()
      const unit = await createUnit(other, { ...nano, name: 'elsewhere' })
      await other.call('DELETE', `/v1/units/${unit.id}`)
      return unit.host.id !== id
    }
    // The server that leads looks every few seconds at what the database says of hosts.
    await eventually(async () => expect(await isElsewhere()).toBe(true))
    for (let times = 0; times < 3; times++) expect(await isElsewhere()).toBe(true)
    expect(await world.anchors()).toContain('west')
  })

  it('a host with units is not evicted, and is once the last of them is gone', async () => {
    const last = await teamOn('north')
    onTestFinished(async () => {
      await world.cordon('north', false)
      await stateSoon('north').toBe('ready')
    })
    await world.cordon('north', true)
    await stateSoon('north').toBe('draining')
    // One of an earlier unit is there until its kubelet has ended it.
    const anchor = async () => {
      await world.actAsKubelet()
      return (await world.anchorOf('north'))?.status?.['phase']
    }
    await expect.poll(anchor, { timeout: 60_000 }).toBe('Running')
    expect(await world.evictAnchor('north')).toBe(429)
    expect(await says(last.team, last.unit)).toBe('on\n')
    await last.team.call('DELETE', `/v1/units/${last.unit.id}`)
    const beganMs = performance.now()
    await expect.poll(async () => await world.evictAnchor('north'), { timeout: 60_000 }).toBe(null)
    expect(performance.now() - beganMs).toBeLessThan(10_000)
  })

  it('units are used, visited, put to sleep, woken and billed while the API server is away', async () => {
    const cost = async () => (await unitOf(team, first)).costCentsSoFar
    const before = await cost()
    fake.stop()
    const endsMs = performance.now() + API_AWAY_MS
    while (performance.now() < endsMs) {
      expect([await says(team, first), await visit()]).toEqual(['on\n', 'the page by 1.1'])
      await freeze(team, web.unit)
      expect(await waking(team, web.unit, 'frozen', visit)).toBe('the page by 1.1')
    }
    expect(await cost()).toBeGreaterThan(before)
    for (const { name } of lab.hosts) expect(await stateOf(name)).toBe('ready')
    fake.start()
    await world.cordon('north', true)
    await stateSoon('north').toBe('draining')
    await world.cordon('north', false)
    await stateSoon('north').toBe('ready')
  })

  it('a host that was cut off is lost once its node is deleted; the others do not notice, and it can join again', async () => {
    const far = await teamOn('north')
    await north.unplug(true)
    await eventually(async () => expect((await hostCalled('north')).awaySince).toBeInstanceOf(Date))
    expect(await stateOf('north')).toBe('ready')
    await world.deleteNode('north')
    await stateSoon('north').toBe('lost')
    expect([await says(team, first), await visit()]).toEqual(['on\n', 'the page by 1.1'])
    const told = await eventually(async () => {
      const answer = await far.team.call('POST', `/v1/units/${far.unit.id}/exec`, { cmd: ['true'] })
      expect(JSON.stringify(answer.body)).toContain('host_lost')
      return answer
    })
    expect(told.status).not.toBe(503)
    await north.unplug(false)
    await makeNode('north')
    await joinAs(lab.servers[0].berth, lab.servers[0].settings, north)
    await stateSoon('north').toBe('ready')
    expect(await says(far.team, far.unit)).toBe('on\n')
  })
})

describe('of two servers', () => {
  it('the other one takes over from one that is killed, while visits go on, and what was running runs on', async () => {
    lab.visitAt(east)
    const leader = await lab.leader()
    const began = await startedAt(team, web.unit)
    let [isEnding, failed, count] = [false, 0, 0]
    const visiting = (async () => {
      while (!isEnding) {
        await visit().then(
          () => (count += 1),
          () => (failed += 1),
        )
        await delay(50)
      }
    })()
    await delay(1000)
    await killSupervisor(leader.berth)
    await eventually(async () => expect(await says(team, first)).toBe('on\n'), 30_000)
    isEnding = true
    await visiting
    expect([failed, await startedAt(team, web.unit)]).toEqual([0, began])
    expect(count).toBeGreaterThan(10)
    expect(await lab.leader()).not.toBe(leader)
    await leader.berth.start(leader.settings)
  })

  it('one alone leads while neither reaches the other, and calls by the other go on afterwards', async () => {
    const leader = await lab.leader()
    const other = lab.servers.find((each) => each !== leader) ?? leader
    const epoch = async () => (await postgres.ask<{ epoch: number }>('select epoch from leaders'))[0]?.epoch
    const before = await epoch()
    await eventually(async () => expect(await says(lab.through(other, team), first)).toBe('on\n'))
    await lab.part(true)
    for (let second = 0; second < 10; second++) {
      expect(await says(lab.through(leader, team), first)).toBe('on\n')
      await delay(1000)
    }
    expect([await epoch(), await lab.leader()]).toEqual([before, leader])
    await lab.part(false)
    await eventually(async () => expect(await says(lab.through(other, team), first)).toBe('on\n'), 30_000)
    expect(await visit()).toBe('the page by 1.1')
  })
})
