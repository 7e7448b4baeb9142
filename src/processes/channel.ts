// The messages between the supervisor and its processes. Settings are sent as one JSON line on standard input, so
// that no secret (DATABASE_URL may contain a password) is in the arguments or environment of a process; reports come
// back as JSON lines on standard output. Standard error is the log.

import type { Config } from '../config.ts'
import type { TicketSecret } from '../lib/ticket-secret.ts'

export const processNames = ['engine', 'migrate', 'server', 'gateway', 'egress'] as const
export type ProcessName = (typeof processNames)[number]

export type ProcessInput = {
  config: Config
  instance: { id: string; subnet: string }
  /** The instance's directory for sockets, which does not survive a reboot. */
  runDir: string
  /** The process's own persistent directory. */
  stateDir: string
  databaseUrl: string
  /** True at the first start, or if credentials.json is missing: the migration creates a key and reports it. */
  needsKey: boolean
  /** For the migration only: the ids of machines and disks in the data directory. */
  machines: string[]
  /** For a gateway among several; null for the only one, and for other processes. */
  worker: GatewayWorker | null
  /** Only load the program so that its compiled code is cached (run-process.ts), then end. */
  warmUp: boolean
}

/** One of several gateways. The first one, 0, also does what there can only be one of. */
export type GatewayWorker = { number: number; of: number; tickets: TicketSecret }

export type ProcessReport =
  /** Something that takes a while has begun: a few words for the operator. */
  | { kind: 'progress'; text: string }
  | { kind: 'ready'; result: unknown }
  /** The process cannot work: a sentence for the operator. The process ends after it. */
  | { kind: 'failed'; message: string }
  | { kind: 'alive' }
  /** Another process is needed, which only starts when it is. */
  | { kind: 'needs'; process: 'egress' }
  /** Of the server: it has the lead until it ends. */
  | { kind: 'leads' }

/** The data of the engine's `ready`: the default isolation class. */
export type EngineReady = { isolation: string; reason: string }

/** The data of the migration's `ready`, for credentials.json. The key is null if there is one already. */
export type MigrateReady = { apiKey: string | null; signInToken: string }

/** What machines may reach, as the engine tells the egress process and the gateway's resolver (lib/egress). */
export const egressSocketsOf = (runDir: string) => ({
  rules: `${runDir}/egress.rules`,
  names: `${runDir}/egress.names`,
})

export const engineSocketOf = (runDir: string) => `${runDir}/engine.sock`

/** The server's own directory there, which the gateway's group can enter. */
export const serverDirOf = (runDir: string) => `${runDir}/server`
/** The socket on which the gateway asks the server to wake units (gateway/server-link/protocol.ts). */
export const wakeSocketOf = (runDir: string) => `${serverDirOf(runDir)}/wake.sock`
/** Where the gateway passes calls of clients of another interface on. */
export const doorSocketOf = (runDir: string) => `${serverDirOf(runDir)}/door.sock`

/** Where the server asks the supervisor for the certificates of hosts that renew theirs. */
export const renewalSocketOf = (runDir: string) => `${runDir}/renewal.sock`

/** The gateway's own directory there, which the server's group can enter. */
export const callersDirOf = (runDir: string) => `${runDir}/callers`
/** Where the server passes on what its callers send to ports of units (gateway/handover/callers.ts). */
export const callersSocketOf = (runDir: string) => `${callersDirOf(runDir)}/socket`

/** Where several gateways have their sockets for each other; only their user can enter. */
export const gatewayDirOf = (runDir: string) => `${runDir}/gateway`

/** In the server's own directory: the key that opens the data key (data-key.ts). */
export const keyFileIn = (stateDir: string) => `${stateDir}/secret.key`

/** What a host has of the fleet: keys and certificates of its two roles, for root alone. */
export const hostIdentitiesIn = (dataDir: string) => ({
  engine: `${dataDir}/fleet/engine.pem`,
  gateway: `${dataDir}/fleet/gateway.pem`,
})

/** In the state directory of a process: its identity in the fleet (lib/fleet-identity.ts). */
export const identityFileIn = (stateDir: string) => `${stateDir}/fleet.pem`

/** The folder for mails, as the server sees it; it is `mail` in the data directory. */
export const mailDirOf = (runDir: string) => `${runDir}/mail`

/** In the gateway's own directory: chain and key (certificates/default.ts, gateway/certificates/current.ts). */
export const certificateFileIn = (stateDir: string) => `${stateDir}/tls.pem`

/**
 * The engine's firewall redirects DNS queries of machines to this port, where the gateway's resolver listens on the
 * gateway address. Not 5353, because mDNS services use it on every address.
 */
export const RESOLVER_PORT = 7053

/** To these ports, on the same address, it redirects what restricted machines send by name; `dns` is the gateway's. */
export const EGRESS_PORTS = { dns: 7054, http: 7055, tls: 7056 } as const

/**
 * How often a process reports that it is alive; after a longer silence it counts as hung and is killed. Together with
 * the restart this stays well below 30 seconds (reliability F24), and is long enough for a process on a busy host.
 */
export const ALIVE_EVERY_MS = 2_000
export const SILENT_FOR_MS = 12_000
