// Parses the reports of the processes (processes/channel.ts defines them). Those processes handle untrusted input, so
// the supervisor, which is root, validates everything.

import { z } from 'zod'
import type { EngineReady, MigrateReady, ProcessReport } from '../processes/channel.ts'

const reportSchema: z.ZodType<ProcessReport> = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('progress'), text: z.string().max(1000) }),
  z.object({ kind: z.literal('ready'), result: z.unknown() }),
  z.object({ kind: z.literal('failed'), message: z.string().max(10_000) }),
  z.object({ kind: z.literal('alive') }),
  z.object({ kind: z.literal('needs'), process: z.literal('egress') }),
  z.object({ kind: z.literal('leads') }),
])

export const engineReadySchema: z.ZodType<EngineReady> = z.object({
  isolation: z.string(),
  reason: z.string(),
})

export const migrateReadySchema: z.ZodType<MigrateReady> = z.object({
  apiKey: z.string().nullable(),
  signInToken: z.string(),
})

/** Returns null for a line that is not a report, for example a library's output. */
export function parseReport(line: string): ProcessReport | null {
  try {
    return reportSchema.parse(JSON.parse(line))
  } catch {
    return null
  }
}
