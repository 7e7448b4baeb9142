import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { X509Certificate } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestClock } from '../../test/support/clock.ts'
import { type FleetIdentity, memberOf, parseIdentity } from '../lib/fleet-identity.ts'
import { fleetTls, listenForFleet } from '../lib/ipc/fleet-tls.ts'
import { silentLog } from '../lib/log.ts'
import { prepareServerIdentity } from './server-identity.ts'

const DAY = 86_400_000

let dataDir: string
let file: string
const clock = createTestClock()
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'berth-server-identity-'))
  file = join(dataDir, 'fleet.pem')
})
afterEach(async () => {
  await rm(dataDir, { recursive: true })
})

const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
async function prepare(host = 'main'): Promise<FleetIdentity> {
  await prepareServerIdentity({ dataDir, role: 'server', host, file, clock, owner })
  return parseIdentity(await readFile(file, 'utf8'))
}

describe("the server's identity", () => {
  it('is of the role server and this host, and readable by its owner alone', async () => {
    const identity = await prepare()
    expect(memberOf(new X509Certificate(identity.certificate))).toEqual({ role: 'server', host: 'main' })
    expect((await stat(file)).mode & 0o777).toBe(0o400)
  })

  it('can both answer and call', async () => {
    const identity = await prepare()
    const heard: string[] = []
    const listener = await listenForFleet(
      { host: '127.0.0.1', port: 0, identity },
      {
        mayCall: { server: true, gateway: false, engine: false },
        protocols: ['a'],
        onMember: (_socket, member) => void heard.push(member.host),
        log: silentLog,
      },
    )
    const servername = 'main.server.berth.internal'
    const socket = connect({ ...fleetTls(identity), port: listener.port, servername, ALPNProtocols: ['a'] })
    await once(socket, 'secureConnect')
    await expect.poll(() => heard).toEqual(['main'])
    await listener.close(() => socket.destroy())
  })

  it('stays at the next start, until two thirds of its time are over', async () => {
    const first = await prepare()
    expect(await prepare()).toEqual(first)
    clock.advance(200 * DAY)
    expect(await prepare()).toEqual(first)
    clock.advance(50 * DAY)
    expect(await prepare()).not.toEqual(first)
  })

  it('is issued again for another name, another authority, and in place of a file that is none', async () => {
    const first = await prepare()
    const renamed = await prepare('other')
    expect(memberOf(new X509Certificate(renamed.certificate))?.host).toBe('other')
    await rm(join(dataDir, 'fleet'), { recursive: true })
    const again = await prepare('other')
    expect(again.authority).not.toBe(first.authority)
    await rm(file)
    await writeFile(file, 'no identity')
    expect(await prepare('other')).not.toEqual(again)
  })
})
