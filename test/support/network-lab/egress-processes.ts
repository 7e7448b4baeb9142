// The egress process and the resolver for restricted machines, in a lab's host: told where by its argument.

import { startResolver } from '../../../src/dns/resolver.ts'
import { createNames } from '../../../src/egress/names.ts'
import { startEgress } from '../../../src/egress/egress.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { followEgressLink } from '../../../src/lib/egress/link-client.ts'
import { createTelling } from '../../../src/lib/egress/telling.ts'
import { createLog } from '../../../src/lib/log.ts'

export type EgressProcesses = {
  address: string
  ports: { dns: number; http: number; tls: number }
  dnsPort: number
  sockets: { rules: string; names: string }
  nameserver: string
  stateDir: string
  /** By which the hosts of secrets are verified, in PEM. */
  roots: string
  /** What siblings are called. */
  siblings: Record<string, string>
}

const given = JSON.parse(process.argv[2] ?? '') as EgressProcesses
const log = createLog('egress', 'error')
const clock = systemClock
const resolving = {
  address: given.address,
  lookup: async (_asker: string, name: string) => given.siblings[name] ?? null,
  upstreams: [{ host: given.nameserver, port: 53 }],
  log,
  clock,
}
await startResolver({ ...resolving, port: given.dnsPort })
const rules = followEgressLink(given.sockets.names)
const { note } = createTelling(() => rules)
await startResolver({ ...resolving, port: given.ports.dns, egress: { ...rules, note } })
await startEgress({
  address: given.address,
  ports: given.ports,
  socketPath: given.sockets.rules,
  resolve: createNames({ servers: [given.nameserver] }),
  stateDir: given.stateDir,
  roots: async () => given.roots,
  log,
  clock,
})
process.on('disconnect', () => process.exit(0))
process.send?.('ready')
