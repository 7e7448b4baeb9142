// Servers without engines on one database, of which one leads (decisions/leadership.md). Their one host is an engine in memory,
// behind TLS, in the process of the test: so a test makes no units, and sees what reached it.

import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect } from 'vitest'
import { issueIdentity } from '../../src/certificates/fleet-ca.ts'
import { openEpochs } from '../../src/engine/epochs.ts'
import { type ServedEngine, serveEngine } from '../../src/engine/ipc/server.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { parseIdentity } from '../../src/lib/fleet-identity.ts'
import { freePort } from '../../src/lib/free-port.ts'
import { newId } from '../../src/lib/ids.ts'
import { silentLog } from '../../src/lib/log.ts'
import { insertHost } from '../../src/store/hosts.ts'
import { Berth, eventually, makeDataDir, nameDataDir, type Settings } from './berth.ts'
import { clearAfterwards } from './clear-afterwards.ts'
import { createFakeEngine, type FakeEngine } from './fake-engine/fake-engine.ts'
import { withDatabaseAt } from './host-invariants.ts'
import { makeTeam } from './make.ts'
import type { OwnPostgres } from './own-postgres.ts'

const HOST = '127.0.0.1'

export type OneServer = {
  berth: Berth
  settings: Settings
  url: string
  /** What `GET /healthz` says. */
  health: () => Promise<{ leads?: false; status: string }>
}

export type ServerPair = {
  servers: [OneServer, OneServer]
  engine: FakeEngine
  /** Its process ends in order, and the next one listens so long after. */
  restartEngine: (awayMs: number) => Promise<void>
  /** Of a team. */
  key: () => string
  /** Which of them has the lead; throws while none has. */
  leader: () => Promise<OneServer>
}

/**
 * For the tests of the file: the first leads, and the second stands by. `databaseUrl`: by which each reaches the database, by
 * its number.
 */
export function useServerPair(postgres: OwnPostgres, databaseUrl: (index: number) => string): ServerPair {
  const paths = [nameDataDir(), nameDataDir()] as const
  const servers = paths.map((path) => newServer(new Berth(path))) as [OneServer, OneServer]
  const engine = createFakeEngine({ clock: systemClock, subnet: 77 })
  let key = ''
  let serve: () => Promise<ServedEngine>
  let served: ServedEngine | undefined
  for (const path of paths) clearAfterwards(path)

  beforeAll(async () => {
    const data = await Promise.all(paths.map(async (path) => await makeDataDir(path, { isEmpty: true })))
    const directory = await mkdtemp(join(tmpdir(), 'berth-pair-'))
    const [first, second] = servers
    for (const [index, server] of servers.entries()) await settle(server, databaseUrl(index))
    await first.berth.start(first.settings)
    await eventually(async () => expect(await first.health()).not.toHaveProperty('leads'))
    for (const file of ['roles/server/secret.key', 'fleet/ca.key', 'fleet/ca.crt']) {
      await mkdir(dirname(join(paths[1], file)), { recursive: true })
      await copyFile(join(paths[0], file), join(paths[1], file))
    }
    await second.berth.start(second.settings)
    const identity = parseIdentity(
      await issueIdentity(paths[0], { role: 'engine', host: 'east' }, new Date()),
    )
    const port = await freePort(HOST)
    serve = async () =>
      await serveEngine({
        engine,
        epochs: await openEpochs(join(directory, 'epoch')),
        socketPath: join(directory, 'engine.sock'),
        socketGid: 0,
        tls: { host: HOST, port, identity },
        log: silentLog,
      })
    served = await serve()
    await withDatabaseAt(postgres.url(), async (db) => {
      await insertHost(db, { id: newId('host'), name: 'east', address: `${HOST}:${port}`, region: null })
      key = (await makeTeam({ app: { db, clock: systemClock } })).key
    })
    return async () => {
      await served?.close()
      await rm(directory, { recursive: true })
      for (const each of data) await each.remove()
    }
  })
  // Before the engine goes.
  afterAll(async () => {
    for (const { berth } of servers) if (berth.wasStarted && !berth.hasEnded) await berth.pressCtrlC()
  })
  return {
    servers,
    engine,
    restartEngine: async (awayMs) => {
      await served?.close()
      await delay(awayMs)
      served = await serve()
    },
    key: () => key,
    leader: async () => {
      const [row] = await postgres.ask<{ holder: string | null }>('select holder from leaders')
      const found = servers.find(({ settings }) =>
        row?.holder?.endsWith(` ${settings['BERTH_SERVER_ADDRESS']}`),
      )
      if (!found) throw new Error('no server leads')
      return found
    },
  }
}

function newServer(berth: Berth): OneServer {
  const settings: Settings = { BERTH_ROLE: 'server' }
  return {
    berth,
    settings,
    url: '',
    health: async () =>
      (await (await fetch(`http://${settings['BERTH_METRICS']}/healthz`)).json()) as { status: string },
  }
}

async function settle(server: OneServer, databaseUrl: string): Promise<void> {
  const { settings } = server
  settings['DATABASE_URL'] = databaseUrl
  for (const name of ['BERTH_API_ADDRESS', 'BERTH_METRICS', 'BERTH_HOSTS_ADDRESS'])
    settings[name] = `${HOST}:${await freePort(HOST)}`
  settings['BERTH_SERVER_ADDRESS'] = settings['BERTH_HOSTS_ADDRESS'] ?? ''
  server.url = `http://${settings['BERTH_API_ADDRESS']}`
}
