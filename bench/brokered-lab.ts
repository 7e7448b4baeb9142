// The host, and the doors of the egress process, that brokered.ts measures.

import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeKey, toPem } from '../src/certificates/signed.ts'
import { authorityCertificate, hostCertificate } from '../src/certificates/team-authority.ts'
import { openAuthorities } from '../src/egress/broker/authorities.ts'
import { createBroker } from '../src/egress/broker/broker.ts'
import { upstreamContext } from '../src/egress/broker/upstream.ts'
import { createTlsDoor } from '../src/egress/tls-door.ts'
import { systemClock } from '../src/lib/clock.ts'
import { parseAllowed } from '../src/lib/egress/rules.ts'
import { testDoor } from '../test/support/egress-door.ts'

const HOST = '127.0.0.2'
const TEAM = 7

if (process.argv[2] === 'host') await serveHost()
else await serveDoors(process.argv[3] ?? '')
process.on('disconnect', () => process.exit(0))

async function serveHost(): Promise<void> {
  const [rootKey, key] = await Promise.all([makeKey(), makeKey()])
  const root = { name: 'Bench root', key: rootKey }
  const now = new Date()
  const roots = authorityCertificate(root.name, { key: rootKey, now })
  const certs = ['api.example.com', 'www.example.com'].map((name) => hostCertificate(name, key, root, now))
  const server = createServer({ key: toPem(key), cert: certs[0] }, (request, response) => {
    if (request.url === '/give') for (let at = 0; at < 1024; at += 1) response.write(block)
    response.end('hello')
  })
  server.addContext('www.example.com', { key: toPem(key), cert: certs[1] })
  server.listen(443, HOST, () => process.send?.({ roots }))
}

async function serveDoors(roots: string): Promise<void> {
  const stateDir = await mkdtemp(join(tmpdir(), 'bench-brokered-'))
  const authorities = await openAuthorities(stateDir, systemClock)
  const authority = await authorities.certificateOf(TEAM)
  await rm(stateDir, { recursive: true })
  const egress = { mode: 'listed' as const, allow: ['*.example.com'], siblings: 'none' as const }
  const secret = {
    name: 'KEY',
    placeholder: 'berth_secret_0123456789abcdef',
    value: 'sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGH',
    hosts: ['api.example.com'],
  }
  const rules = {
    machine: 'unit_1',
    egress,
    entries: parseAllowed(egress.allow),
    team: TEAM,
    secrets: [secret],
  }
  const door = { ...testDoor(() => rules, []), note: (_machine: string, line: object) => line as never }
  door.resolve = async () => ({ kind: 'addresses', addresses: [HOST] })
  const broker = createBroker(door, { authorities, trusted: upstreamContext(async () => roots) })
  const server = createTlsDoor(door, broker).listen(0, '127.0.0.1', () =>
    process.send?.({ port: (server.address() as AddressInfo).port, authority }),
  )
}

const block = Buffer.alloc(256 * 1024)
