// A gateway by itself, for `npm run bench:gateway`: the real listeners, routes and wake leases, around a server that
// always says that the unit runs. Its argument is JSON; it prints where it listens, and ends with its standard input.

import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { AddressInfo, Server } from 'node:net'
import { createSecureContext } from 'node:tls'
import type { Protocol } from '../src/contract/endpoint.ts'
import { createEndpointRoutes } from '../src/gateway/routing/endpoint-routes.ts'
import { createGateway } from '../src/gateway/server.ts'
import type { ServerClient } from '../src/gateway/server-link/client.ts'
import type { GatewayAnswer } from '../src/gateway/server-link/protocol.ts'
import { createWakeLeases } from '../src/gateway/server-link/wake-leases.ts'
import { systemClock as clock } from '../src/lib/clock.ts'
import { silentLog as log } from '../src/lib/log.ts'

/** `endpoints`: the port of loopback behind each name, and its protocol. */
export type LoneGateway = {
  domain: string
  certificate: string
  endpoints: Record<string, { port: number; protocol: Protocol }>
  /** The ports of another one, which this one shares. */
  shared?: { http: number; tls: number }
}

const { domain, certificate, endpoints, shared } = JSON.parse(process.argv[2] ?? '') as LoneGateway
const pem = await readFile(certificate, 'utf8')
createSecureContext({ cert: pem, key: pem })

const run = { generation: 1, address: '127.0.0.1' }
const unitOf = (name: string) => `unit_${name}`
const server: ServerClient = {
  async ask(operation, request) {
    const awake = 'unitIds' in request ? request.unitIds : []
    const answers: Partial<GatewayAnswer> = { use: { kind: 'running', ...run }, used: { awake }, visits: {} }
    return answers[operation] as GatewayAnswer[typeof operation]
  },
  async follow(watcher, signal) {
    watcher.onConnected()
    await once(signal, 'abort')
  },
}
const leases = createWakeLeases({ server, clock, log })
const routes = createEndpointRoutes({
  clock,
  findAll: async (names) =>
    names.flatMap((name) => {
      const endpoint = endpoints[name]
      if (!endpoint) return []
      const route = { endpointId: `endpoint_${name}`, unitId: unitOf(name), ...endpoint, ...run, name }
      return [{ ...route, secretHash: null, state: 'running', stoppedReason: null, frozen: false } as const]
    }),
})
const gateway = createGateway({
  domain,
  ports: { nameAt: () => null },
  routes,
  waker: leases.waker,
  activity: leases.activity,
  certificates: { find: async () => undefined, follow: (follow) => follow(pem) },
  clock,
  log,
})

async function listen(listener: Server, port = 0): Promise<number> {
  await once(listener.listen({ port, host: '127.0.0.1', reusePort: true }), 'listening')
  return (listener.address() as AddressInfo).port
}

const http = await listen(gateway.http, shared?.http)
const tls = await listen(gateway.tls, shared?.tls)
console.log(JSON.stringify({ http, tls }))
process.stdin.resume()
await once(process.stdin, 'end')
await gateway.close()
await leases.stop()
