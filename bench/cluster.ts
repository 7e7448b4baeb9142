// sudo node bench/cluster.ts [rounds] [execs]
//
// What it costs units that their host is a node of a cluster: creates, execs, wakes and forks while the part of the server that
// follows nodes, keeps anchors and shows hosts runs beside them, and while it does not, by turns. The API server is in memory.

import { setTimeout as delay } from 'node:timers/promises'
import { openApi } from '../src/kubernetes/api.ts'
import { systemClock } from '../src/lib/clock.ts'
import { freePort } from '../src/lib/free-port.ts'
import { silentLog } from '../src/lib/log.ts'
import { openDatabase } from '../src/store/db.ts'
import { setHostNode } from '../src/store/host-nodes.ts'
import { listHosts } from '../src/store/hosts.ts'
import { postgresSocketDir, runDirOf } from '../src/supervisor/instance.ts'
import { startMembership } from '../src/supervisor/kubernetes/membership.ts'
import { postgresUrl } from '../src/supervisor/postgres.ts'
import { Berth, makeDataDir } from '../test/support/berth.ts'
import { startFakeApiServer } from '../test/support/kubernetes/fake-api-server.ts'
import { createKubeWorld, NAMESPACE } from '../test/support/kubernetes/world.ts'
import { makeTeam } from '../test/support/make.ts'
import { type Caller, callerOf } from './caller.ts'
import { endBerths } from './end-berths.ts'
import { headOf, lineOf, type Pair } from './in-turn.ts'

const [rounds = 40, execs = 400] = process.argv.slice(2).map(Number)
/** So many of one side before the other one's turn. */
const BLOCK = 10

const data = await makeDataDir()
const berth = new Berth(data.path)
const callers: Caller[] = []
const settings = {
  BERTH_ISOLATION: process.env['BERTH_ISOLATION'] ?? 'runc',
  BERTH_HOSTS_ADDRESS: `127.0.0.1:${await freePort('127.0.0.1')}`,
}
const fake = await startFakeApiServer()
const world = await createKubeWorld(fake.access)
const api = openApi(fake.access)

try {
  await berth.start(settings)
  const db = openDatabase(
    postgresUrl(postgresSocketDir(runDirOf(await berth.instance())), 'berth'),
    silentLog,
  )
  const [host] = await listHosts(db)
  if (!host) throw new Error('there is no host')
  await world.makeNode('node')
  await setHostNode(db, { name: host.name, node: { name: 'node', uid: (await world.uidOf('node')) ?? '' } })
  const { key } = await makeTeam({ app: { db, clock: systemClock } })
  const caller = callerOf({ baseUrl: berth.credentials.baseUrl, key })
  callers.push(caller)
  const id = (await caller.create()).units[0].id

  const join = async () => {
    const running = await startMembership({
      dataDir: data.path,
      api,
      namespace: NAMESPACE,
      door: { host: '127.0.0.1', port: 0 },
      link: { host: '127.0.0.1', port: Number(settings.BERTH_HOSTS_ADDRESS.split(':')[1]) },
      anchorImage: 'pause',
      db,
      clock: systemClock,
      log: silentLog,
    })
    while (!(await world.anchors()).includes('node')) await delay(50)
    return running
  }
  const measure = async (what: string, count: number, work: () => Promise<number>) => {
    const pair: Pair = { one: [], other: [] }
    for (let warm = 0; warm < BLOCK; warm += 1) await work()
    for (let block = 0; block * BLOCK < count; block += 1)
      for (const side of block % 2 === 0 ? (['one', 'other'] as const) : (['other', 'one'] as const)) {
        const joined = side === 'other' ? await join() : null
        for (let round = 0; round < BLOCK; round += 1) pair[side].push(await work())
        await joined?.stop()
      }
    console.log(lineOf(`${what} (${count})`, pair))
  }
  console.log(headOf('without', 'cluster'))
  await measure('create', rounds, async () => await caller.timeCreate())
  await measure('exec', execs, async () => await caller.timeExec(id))
  await measure('wake', rounds, async () => await caller.timeWake(id))
  await measure('fork', rounds, async () => await caller.timeFork(id))
  await db.destroy()
} finally {
  await endBerths(callers, [{ berth, data }])
  api.close()
  await world.close()
  await fake.close()
}
