// The settings of a Berth with several hosts: of the server's machine, and of a host's.

import { join, resolve } from 'node:path'
import { type Address, address, type Env } from './setting-values.ts'

/**
 * What a machine is of a Berth: all of it; `host`: the engine and the gateway alone, for a server on another machine;
 * `server`: the server alone, whose units are on hosts that have joined.
 */
export const roles = ['all', 'host', 'server'] as const
export type Role = (typeof roles)[number]

export type FleetSettings = {
  role: Role
  /** A host joins with it: a token of `npm run hosts -- join-token`, or `kubernetes:` and the address of a door. */
  joinToken: string | null
  /** Where the server reaches the engine of a host, if not at the address by which the host reaches the server's machine. */
  engineAddress: Address | null
  /** Where the engine also answers a server on another machine, and the file with its certificate (lib/fleet-identity.ts). */
  engineTls: (Address & { certificateFile: string }) | null
  /** Where the server answers the gateways of other hosts; null: there are no other hosts. */
  hostsAddress: Address | null
  /** Where other servers of this Berth reach this one, of which one leads; null: it is the only one. */
  serverAddress: Address | null
  /** Where the gateway takes visits that came to the gateways of other hosts; null: each host's gateway has its own alone. */
  gatewayHandover: Address | null
  /** Where pods of Kubernetes join as hosts, and where the API server is; null: membership is the operator's. */
  kubernetes: { door: Address; api: Address; anchorImage: string } | null
}

const forHosts = ['BERTH_JOIN', 'BERTH_ENGINE_ADDRESS'] as const
const ofEngines = ['BERTH_ENGINE_TLS', 'BERTH_ENGINE_CERTIFICATE', 'BERTH_GATEWAY_HANDOVER'] as const
const forServers = [
  'DATABASE_URL',
  'BERTH_HOSTS_ADDRESS',
  'BERTH_KUBERNETES_DOOR',
  'BERTH_SERVER_ADDRESS',
] as const

/** Throws a sentence that names the setting that is wrong. */
export function fleetSettings(env: Env, { role, dataDir }: { role: Role; dataDir: string }): FleetSettings {
  const unused = role !== 'host' ? forHosts.find((name) => env[name]) : undefined
  if (unused)
    throw new Error(`${unused} is for a machine with BERTH_ROLE=host: set both, or unset ${unused}.`)
  const ofServers = role === 'host' ? forServers.find((name) => env[name]) : undefined
  if (ofServers)
    throw new Error(`A host has no server: unset ${ofServers}, which is for the server's machine.`)
  const ofEngine = role === 'server' ? ofEngines.find((name) => env[name]) : undefined
  if (ofEngine)
    throw new Error(`A server with BERTH_ROLE=server has no engine and no gateway: unset ${ofEngine}.`)
  if (role === 'server' && !env['BERTH_HOSTS_ADDRESS'])
    throw new Error('BERTH_ROLE=server needs BERTH_HOSTS_ADDRESS: all units are on other machines.')
  const hostsAddress = env['BERTH_HOSTS_ADDRESS'] ? address(env, 'BERTH_HOSTS_ADDRESS', '') : null
  return {
    role,
    joinToken: env['BERTH_JOIN'] || null,
    engineAddress: env['BERTH_ENGINE_ADDRESS'] ? address(env, 'BERTH_ENGINE_ADDRESS', '') : null,
    engineTls: role === 'host' ? hostEngine(env, dataDir) : engineTls(env),
    hostsAddress,
    serverAddress: serverAddress(env, role),
    gatewayHandover: gatewayHandover(env, role === 'host' || hostsAddress !== null),
    kubernetes: kubernetes(env, hostsAddress),
  }
}

function serverAddress(env: Env, role: Role): FleetSettings['serverAddress'] {
  if (!env['BERTH_SERVER_ADDRESS']) return null
  if (role !== 'server' || !env['DATABASE_URL'])
    throw new Error(
      'BERTH_SERVER_ADDRESS needs BERTH_ROLE=server and DATABASE_URL: several servers have one database.',
    )
  return address(env, 'BERTH_SERVER_ADDRESS', '')
}

function gatewayHandover(env: Env, hasOthers: boolean): FleetSettings['gatewayHandover'] {
  if (!env['BERTH_GATEWAY_HANDOVER']) return null
  if (hasOthers) return address(env, 'BERTH_GATEWAY_HANDOVER', '')
  throw new Error('BERTH_GATEWAY_HANDOVER means nothing without other hosts: set BERTH_HOSTS_ADDRESS too.')
}

/** Kubernetes itself says in every pod where its API server is. */
function kubernetes(env: Env, hostsAddress: Address | null): FleetSettings['kubernetes'] {
  if (!env['BERTH_KUBERNETES_DOOR']) return null
  const host = env['KUBERNETES_SERVICE_HOST']
  if (!host)
    throw new Error('BERTH_KUBERNETES_DOOR is for a server in a pod: KUBERNETES_SERVICE_HOST is not set.')
  if (!hostsAddress)
    throw new Error('BERTH_KUBERNETES_DOOR needs BERTH_HOSTS_ADDRESS, where the server answers gateways.')
  const port = Number(env['KUBERNETES_SERVICE_PORT'] ?? 443)
  return {
    door: address(env, 'BERTH_KUBERNETES_DOOR', ''),
    api: { host, port },
    anchorImage: env['BERTH_KUBERNETES_ANCHOR_IMAGE'] || 'registry.k8s.io/pause:3.10',
  }
}

function engineTls(env: Env): FleetSettings['engineTls'] {
  const certificateFile = env['BERTH_ENGINE_CERTIFICATE']
  if ((env['BERTH_ENGINE_TLS'] === undefined) !== (certificateFile === undefined))
    throw new Error('BERTH_ENGINE_TLS and BERTH_ENGINE_CERTIFICATE are set together or not at all.')
  if (certificateFile === undefined) return null
  return { ...address(env, 'BERTH_ENGINE_TLS', ''), certificateFile: resolve(certificateFile) }
}

/** Its certificate comes with its joining. */
function hostEngine(env: Env, dataDir: string): FleetSettings['engineTls'] {
  if (env['BERTH_ENGINE_CERTIFICATE'] !== undefined)
    throw new Error('A host gets its certificate when it joins: unset BERTH_ENGINE_CERTIFICATE.')
  const listen = address(env, 'BERTH_ENGINE_TLS', '0.0.0.0:7075')
  if (listen.port === 0)
    throw new Error('BERTH_ENGINE_TLS of a host needs a port that stays, since the server calls it there.')
  return { ...listen, certificateFile: join(dataDir, 'fleet', 'engine.pem') }
}
