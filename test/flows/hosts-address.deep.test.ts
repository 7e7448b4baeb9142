// A whole Berth with an address for other hosts, as the gateway of one sees it (decisions/joining.md): the supervisor makes
// the server's certificate, the confined server answers with it, and goes on after its death.

import { readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { issueIdentity } from '../../src/certificates/fleet-ca.ts'
import { loadConfig } from '../../src/config.ts'
import { connectToServer, type ServerClient } from '../../src/gateway/server-link/client.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { parseIdentity } from '../../src/lib/fleet-identity.ts'
import { freePort } from '../../src/lib/free-port.ts'
import { newId } from '../../src/lib/ids.ts'
import { getAccount } from '../../src/lib/system-users.ts'
import { runBesideBerth } from '../../src/operator/beside-berth.ts'
import { insertHost, setHostState } from '../../src/store/hosts.ts'
import { eventually } from '../support/berth.ts'
import { useBerth } from '../support/use-berth.ts'

const HOST = '127.0.0.1'
let port: number
beforeAll(async () => {
  port = await freePort(HOST)
})

const berth = useBerth(() => ({ BERTH_HOSTS_ADDRESS: `${HOST}:${port}` }))

describe('a Berth with an address for other hosts', () => {
  const id = newId('host')
  let server: ServerClient
  const done = new AbortController()
  let connections = 0
  let following: Promise<void>
  const certificateFile = () => join(berth.dataDir, 'roles/server/fleet.pem')

  beforeAll(async () => {
    // It need not be there: only its gateway is looked at here.
    const host = { id, name: 'east', address: `${HOST}:1`, region: null }
    await runBesideBerth(loadConfig({ BERTH_DATA_DIR: berth.dataDir }), ({ db }) => insertHost(db, host))
    const gateway = { role: 'gateway', host: 'east' } as const
    const identity = parseIdentity(await issueIdentity(berth.dataDir, gateway, new Date()))
    const address = { host: HOST, port, identity: () => identity, settings: loadConfig({}) }
    server = connectToServer({ address, clock: systemClock })
    const watcher = {
      onConnected: () => (connections += 1),
      onRunEnded: () => {},
      onDisconnected: () => {},
    }
    following = server.follow(watcher, done.signal)
  })
  afterAll(async () => {
    done.abort()
    await following
  })

  it('has a certificate that only its server can read', async () => {
    const { uid, gid } = await getAccount('berth')
    expect(await stat(certificateFile())).toMatchObject({ uid, gid, mode: 0o100400 })
  })

  it('answers the gateway of another host', async () => {
    await eventually(async () => expect(connections).toBe(1))
    expect(await server.ask('routes', { names: ['nothing-aaaaaaaaaa'] })).toEqual({ routes: [] })
  })

  it('answers again once its server has been killed and started again', async () => {
    const pid = await berth.pidOf('server')
    process.kill(pid ?? 0, 'SIGKILL')
    await eventually(async () => expect(connections).toBe(2))
    expect(await server.ask('used', { unitIds: [] })).toEqual({ awake: [] })
  })

  it('starts again with the same certificate, and with a new one if it is gone', async () => {
    const settings = { BERTH_HOSTS_ADDRESS: `${HOST}:${port}` }
    const first = await readFile(certificateFile(), 'utf8')
    await berth.pressCtrlC()
    await berth.start(settings)
    expect(await readFile(certificateFile(), 'utf8')).toBe(first)
    await berth.pressCtrlC()
    await rm(certificateFile())
    await berth.start(settings)
    expect(await readFile(certificateFile(), 'utf8')).not.toBe(first)
    await eventually(async () => expect(await server.ask('used', { unitIds: [] })).toEqual({ awake: [] }))
  })

  it('ends the connection of a host that is removed', async () => {
    const config = loadConfig({ BERTH_DATA_DIR: berth.dataDir })
    const at = new Date()
    await runBesideBerth(config, ({ db }) => setHostState(db, { id, from: ['joining'], to: 'removed', at }))
    await eventually(async () => await expect(server.ask('used', { unitIds: [] })).rejects.toThrow('ended'))
  })
})
