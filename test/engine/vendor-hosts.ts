// An engine of this host whose machines reach hosts of the test's own by the names of vendors: the egress process is this one, with
// an authority that signs for those names.

import { createSocket, type Socket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, RequestListener } from 'node:http'
import type { Duplex } from 'node:stream'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { decode, encode } from 'dns-packet'
import { makeKey, toPem } from '../../src/certificates/signed.ts'
import { authorityCertificate, hostCertificate } from '../../src/certificates/team-authority.ts'
import { startResolver } from '../../src/dns/resolver.ts'
import { startEgress } from '../../src/egress/egress.ts'
import type { IsolationClass } from '../../src/engine/engine.ts'
import { namesOf } from '../../src/engine/oci/network/names.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { followEgressLink } from '../../src/lib/egress/link-client.ts'
import { silentLog } from '../../src/lib/log.ts'
import { EGRESS_PORTS } from '../../src/processes/channel.ts'
import { openHostEngine } from './host-engine.ts'

export type VendorHosts = {
  host: Awaited<ReturnType<typeof openHostEngine>>
  close: () => Promise<void>
}

/**
 * @param options `address`: of this host, below 127.66.0.0/16, on which the test's hosts are. `hosts`: what each name answers. `upgrades`: what takes its requests to upgrade.
 *   `elsewhere`: names that lead where they always do. `directory`: of the test's own.
 */
export async function openVendorHosts({
  address,
  hosts,
  upgrades = {},
  elsewhere = [],
  directory,
  isolation = 'auto',
}: {
  address: string
  hosts: Record<string, RequestListener>
  upgrades?: Record<string, (request: IncomingMessage, socket: Duplex, head: Buffer) => void>
  elsewhere?: string[]
  directory: string
  isolation?: IsolationClass | 'auto'
}): Promise<VendorHosts> {
  const root = { name: 'Test root', key: await makeKey() }
  const key = await makeKey()
  const now = new Date()
  const server = createServer((request, response) =>
    hosts[request.headers.host ?? '']?.(request, response),
  ).listen(443, address)
  for (const name of Object.keys(hosts))
    server.addContext(name, { key: toPem(key), cert: hostCertificate(name, key, root, now) })
  // Codex asks for a WebSocket first.
  server.on('upgrade', (request, socket, head) => {
    const taken = upgrades[request.headers.host ?? '']
    if (taken) taken(request, socket, head)
    else socket.end('HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n')
  })
  const names = await serveNames(address)
  const sockets = {
    rules: { path: join(directory, 'rules'), gid: 0 },
    names: { path: join(directory, 'names'), gid: 0 },
  }
  const host = await openHostEngine({
    isolation,
    egress: { ports: EGRESS_PORTS, gid: null, sockets, onNeeded: () => {} },
  })
  const shared = { address: namesOf(host.instance).gateway, log: silentLog, clock: systemClock }
  const rules = followEgressLink(sockets.names.path)
  const resolver = await startResolver({
    ...shared,
    port: EGRESS_PORTS.dns,
    lookup: async () => null,
    upstreams: [{ host: address, port: 53 }],
    egress: { ...rules, note: () => {} },
  })
  const egress = await startEgress({
    ...shared,
    ports: EGRESS_PORTS,
    socketPath: sockets.rules.path,
    resolve: async (name) => {
      const addresses = [elsewhere.includes(name) ? (await lookup(name, { family: 4 })).address : address]
      return { kind: 'addresses', addresses }
    },
    stateDir: join(directory, 'authorities'),
    roots: async () =>
      [
        authorityCertificate(root.name, { key: root.key, now }),
        ...rootCertificates,
        await readFile('/etc/ssl/certs/ca-certificates.crt', 'utf8'),
      ].join('\n'),
  })
  return {
    host,
    close: async () => {
      for (const each of [egress, resolver, rules]) await each.close()
      server.closeAllConnections()
      server.close()
      names.close()
      await host.close()
    },
  }
}

/** Every name is at one address that units may use: where a connection goes is decided by its name. */
async function serveNames(address: string): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.on('message', (bytes, from) => {
    const { id = 0, questions = [] } = decode(bytes)
    const answers = questions.flatMap(({ type, name }) =>
      type === 'A' ? [{ type: 'A' as const, name, ttl: 60, data: '203.0.113.10' }] : [],
    )
    socket.send(encode({ type: 'response', id, flags: 0x180, questions, answers }), from.port, from.address)
  })
  await new Promise<void>((resolve) => socket.bind(53, address, resolve))
  return socket
}
