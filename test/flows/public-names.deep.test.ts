// Features of public endpoints, with all processes of Berth: certificates issued on demand, and dedicated ports for clients
// without SNI.

import { execFile } from 'node:child_process'
import type { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { promisify } from 'node:util'
import { beforeAll, expect, it } from 'vitest'
import { freePort } from '../../src/lib/free-port.ts'
import { eventually } from '../support/berth.ts'
import { type Pebble, startPebble } from '../support/pebble.ts'
import {
  hibernate,
  freeze,
  FROZEN_FOR_S,
  type Published,
  publish,
  unitOf,
  waking,
} from '../support/published.ts'
import { useBerth } from '../support/use-berth.ts'

const run = promisify(execFile)

const PASSWORD = 'not-secret'
const RANGE = { first: 17_000, last: 17_019 }

let pebble: Pebble
let tlsPort: number
beforeAll(async () => {
  tlsPort = await freePort('127.0.0.1')
  pebble = await startPebble({ tlsPort })
  return () => pebble.close()
})

const berth = useBerth(() => ({
  BERTH_FROZEN_FOR: `${FROZEN_FOR_S}s`,
  BERTH_GATEWAY_TLS: `127.0.0.1:${tlsPort}`,
  BERTH_GATEWAY_PORTS: `${RANGE.first}-${RANGE.last}`,
  BERTH_ACME_DIRECTORY: pebble.directory,
  BERTH_ACME_EMAIL: 'ops@example.com',
  BERTH_ACME_CA_FILE: pebble.caFile,
}))
let open: Published
let closed: Published

beforeAll(async () => {
  const redis = { image: 'berth.local/redis:7', ports: [6379], env: { REDIS_PASSWORD: PASSWORD } }
  const at = { port: 6379, protocol: 'redis' } as const
  open = await publish(berth, { ...redis, name: 'open' }, { ...at, mode: 'public' })
  closed = await publish(berth, { ...redis, name: 'closed' }, { ...at, mode: 'private' })
})
/** Returns the certificate presented to a client that trusts only this CA. */
async function shownTo(servername: string, ca: string): Promise<X509Certificate | undefined> {
  const client = connectTls({ port: tlsPort, host: '127.0.0.1', servername, ca })
  await once(client, 'secureConnect')
  const certificate = client.getPeerX509Certificate()
  client.destroy()
  return certificate
}

async function ownPort({ unit }: Published): Promise<number | undefined> {
  const { endpoints } = await unitOf(berth, unit)
  return endpoints[0]?.portWithoutSni
}

/** Runs redis-cli without SNI. */
async function askNameless(port: number): Promise<string> {
  const args = ['-h', '127.0.0.1', '-p', String(port), '--tls', '--insecure', 'echo', 'done']
  const env = { ...process.env, REDISCLI_AUTH: PASSWORD }
  return (await run('redis-cli', args, { env, timeout: 60_000 })).stdout.trim()
}

const isOpen = async (port: number) =>
  await new Promise<boolean>((resolve) => {
    const socket = connectTcp(port, '127.0.0.1', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })

it('a public name gets a certificate from the ACME authority at its first visit, readable only by the gateway', async () => {
  const certificate = await shownTo(open.host, await pebble.root())
  expect(certificate?.subjectAltName).toBe(`DNS:${open.host}`)
  const { mode } = await stat(`${berth.dataDir}/roles/gateway/acme`)
  expect(mode & 0o077).toBe(0)
})

it('a private name is not sent to the ACME authority and gets a certificate of the local CA', async () => {
  const issued = pebble.issued()
  const certificate = await shownTo(closed.host, await readFile(berth.credentials.caFile ?? '', 'utf8'))
  expect(certificate?.checkHost(closed.host)).toBeDefined()
  expect(pebble.issued()).toBe(issued)
  expect(pebble.output()).not.toContain(closed.host.slice(0, 10))
})

it('redis-cli without --sni wakes and uses a public unit at its dedicated port', async () => {
  const port = (await ownPort(open)) ?? 0
  expect(port).toBeGreaterThanOrEqual(RANGE.first)
  expect(await askNameless(port)).toBe('done')
  await freeze(berth, open.unit)
  expect(await waking(berth, open.unit, 'frozen', () => askNameless(port))).toBe('done')
  await hibernate(berth, [open.unit])
  expect(await waking(berth, open.unit, 'cold', () => askNameless(port))).toBe('done')
})

it('a private unit has no dedicated port, and a unit that becomes private loses it within two seconds', async () => {
  expect(await ownPort(closed)).toBeUndefined()
  const port = (await ownPort(open)) ?? 0
  expect(await isOpen(port)).toBe(true)
  const body = { port: 6379, protocol: 'redis', mode: 'private' }
  const answer = await berth.call('POST', `/v1/units/${open.unit.id}/expose`, body)
  expect(answer.status).toBe(200)
  await eventually(async () => expect(await isOpen(port)).toBe(false), 2000)
  expect(await ownPort(open)).toBeUndefined()
})
