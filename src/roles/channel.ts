// What the supervisor and a role tell each other. Settings go in as one JSON line on standard input, so that
// no secret (DATABASE_URL may hold a password) is in the arguments or environment of a process; reports come
// back as JSON lines on standard output. Standard error is the log.

import { z } from 'zod'
import type { Config } from '../config.ts'

export const roleNames = ['engine', 'migrate', 'server', 'gateway'] as const
export type RoleName = (typeof roleNames)[number]

export type RoleInput = {
  config: Config
  instance: { id: string; subnet: string }
  /** Of this instance, gone with the power: the engine's socket is in it. */
  runDir: string
  /** A directory of this role's own, kept; empty for roles that have none. */
  stateDir: string
  databaseUrl: string
  /** The first start, or credentials.json is gone: a key is to be made and told. */
  needsKey: boolean
}

export const roleReportSchema = z.discriminatedUnion('kind', [
  /** Something that takes a while has begun: a few words for the person who waits. */
  z.object({ kind: z.literal('progress'), text: z.string() }),
  z.object({ kind: z.literal('ready'), result: z.unknown() }),
  /** It cannot do its work: a sentence for the operator. It ends after this. */
  z.object({ kind: z.literal('failed'), message: z.string() }),
  z.object({ kind: z.literal('alive') }),
])

export type RoleReport = z.infer<typeof roleReportSchema>

/** The engine's `ready` tells the class machines get by default. */
export const engineReadySchema = z.object({ isolation: z.string(), reason: z.string() })
export type EngineReady = z.infer<typeof engineReadySchema>

/** The migration's `ready` tells what credentials.json needs. */
export const migrateReadySchema = z.object({ apiKey: z.string().nullable(), signInToken: z.string() })
export type MigrateReady = z.infer<typeof migrateReadySchema>

export const engineSocketOf = (runDir: string) => `${runDir}/engine.sock`

/** A role says it is alive this often; silent for the longer time, it hangs and is killed (reliability F24). */
export const ALIVE_EVERY_MS = 5_000
export const SILENT_FOR_MS = 30_000
