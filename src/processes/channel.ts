// What the supervisor and a role tell each other. Settings go in as one JSON line on standard input, so that
// no secret (DATABASE_URL may hold a password) is in the arguments or environment of a process; reports come
// back as JSON lines on standard output. Standard error is the log.

import type { Config } from '../config.ts'

export const processNames = ['engine', 'migrate', 'server', 'gateway'] as const
export type ProcessName = (typeof processNames)[number]

export type ProcessInput = {
  config: Config
  instance: { id: string; subnet: string }
  /** Of this instance, gone with the power: sockets are in it. */
  runDir: string
  /** A directory of the role's own, kept. */
  stateDir: string
  databaseUrl: string
  /** The first start, or credentials.json is gone: a key is to be made and told. */
  needsKey: boolean
  /** For the migration alone: ids of machines and disks in the data directory. */
  machines: string[]
  /** Only load the program, so that the next process finds it compiled (run-process.ts), and end. */
  warmUp: boolean
}

export type ProcessReport =
  /** Something that takes a while has begun: a few words for the person who waits. */
  | { kind: 'progress'; text: string }
  | { kind: 'ready'; result: unknown }
  /** It cannot do its work: a sentence for the operator. It ends after this. */
  | { kind: 'failed'; message: string }
  | { kind: 'alive' }

/** What the engine's `ready` tells: the class machines get by default. */
export type EngineReady = { isolation: string; reason: string }

/** What the migration's `ready` tells: credentials.json needs it. The key is null when there is one already. */
export type MigrateReady = { apiKey: string | null; signInToken: string }

export const engineSocketOf = (runDir: string) => `${runDir}/engine.sock`

/** The server's own directory there, which the gateway's group can enter. */
export const serverDirOf = (runDir: string) => `${runDir}/server`
/** Where the gateway asks the server for units to be awake (gateway/server-link/protocol.ts). */
export const wakeSocketOf = (runDir: string) => `${serverDirOf(runDir)}/wake.sock`

/** Within the server's own directory: what opens the key that secrets are sealed with (data-key.ts). */
export const keyFileIn = (stateDir: string) => `${stateDir}/secret.key`

/** Where the server finds the folder for mails, `mail` of the data directory. */
export const mailDirOf = (runDir: string) => `${runDir}/mail`

/** Within the gateway's own directory: chain and key (certificates/default.ts, gateway/certificates/current.ts). */
export const certificateFileIn = (stateDir: string) => `${stateDir}/tls.pem`

/**
 * The engine's firewall sends what machines ask on port 53 here, where the gateway's resolver listens on the
 * gateway address. Not 5353: mDNS services hold that on every address.
 */
export const RESOLVER_PORT = 7053

/**
 * A role says it is alive this often; silent for the longer time, it hangs and is killed. With the time it takes
 * to start again that is well under 30 seconds (reliability F24); a role that is merely busy, on a host that is,
 * is held up for less.
 */
export const ALIVE_EVERY_MS = 2_000
export const SILENT_FOR_MS = 12_000
