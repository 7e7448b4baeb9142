// The host, and the doors of the egress process, that brokered.ts and egress-beside.ts measure.

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
import { type Client, createShares } from '../src/egress/shares.ts'
import { createTlsDoor } from '../src/egress/tls-door.ts'
import { systemClock } from '../src/lib/clock.ts'
import type { BrokeredSecret } from '../src/lib/egress/secrets.ts'
import { parseAllowed } from '../src/lib/egress/rules.ts'
import { attack, BENCH_MACHINES } from './egress-beside.ts'
import { testDoor } from '../test/support/egress-door.ts'

const HOST = process.env['BENCH_HOST'] ?? '127.0.0.2'
const TEAM = 7

if (process.argv[2] === 'host') await serveHost()
else if (process.argv[2] === 'attack') void attack(JSON.parse(process.argv[3] ?? '{}'))
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
  const [authority, another] = await Promise.all(
    [TEAM, TEAM + 1].map((team) => authorities.certificateOf(team)),
  )
  await rm(stateDir, { recursive: true })
  const egress = { mode: 'listed' as const, allow: ['*.example.com'], siblings: 'none' as const }
  const secret = {
    name: 'KEY',
    placeholder: 'berth_secret_0123456789abcdef',
    value: 'sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGH',
    hosts: ['api.example.com'],
  }
  const known = { machine: 'unit_1', egress, entries: parseAllowed(egress.allow) }
  const rules = { ...known, team: TEAM, secrets: [secret] }
  const many = { ...known, team: TEAM + 1, secrets: manySecrets() }
  const one = { ...known, team: TEAM + 1, secrets: [secret] }
  const rulesOf = (machine: string) =>
    machine === BENCH_MACHINES.manySecrets ? many : machine === BENCH_MACHINES.oneSecret ? one : rules
  const shares = createShares(systemClock, () => performance.eventLoopUtilization().active)
  const door = {
    ...testDoor(rulesOf, []),
    note: (_machine: string, line: object) => line as never,
    turn: (machine: string, units: number, client?: Client) =>
      shares.turn({ team: String(rulesOf(machine).team), machine }, units, client),
  }
  door.resolve = async () => ({ kind: 'addresses', addresses: [HOST] })
  const broker = createBroker(door, { authorities, trusted: upstreamContext(async () => roots) })
  const server = createTlsDoor(door, broker).listen(0, '127.0.0.1', () =>
    process.send?.({ port: (server.address() as AddressInfo).port, authority, another }),
  )
}

/** 32 secrets of 8,192 characters that programs escape. */
function manySecrets(): BrokeredSecret[] {
  return Array.from({ length: 32 }, (_, at) => ({
    name: `KEY_${at}`,
    placeholder: `berth_secret_of_many_${at}_`,
    value: `${at}`.padEnd(8192, '"<&>/=+%'),
    hosts: ['api.example.com'],
  }))
}

const block = Buffer.alloc(256 * 1024)
