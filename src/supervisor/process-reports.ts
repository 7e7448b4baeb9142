// Reading what roles report (processes/channel.ts says what it means). They parse strangers' bytes, so the
// supervisor, which is root, takes nothing of theirs on trust.

import { z } from 'zod'
import type { EngineReady, MigrateReady, ProcessReport } from '../processes/channel.ts'

const reportSchema: z.ZodType<ProcessReport> = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('progress'), text: z.string().max(1000) }),
  z.object({ kind: z.literal('ready'), result: z.unknown() }),
  z.object({ kind: z.literal('failed'), message: z.string().max(10_000) }),
  z.object({ kind: z.literal('alive') }),
])

export const engineReadySchema: z.ZodType<EngineReady> = z.object({
  isolation: z.string(),
  reason: z.string(),
})

export const migrateReadySchema: z.ZodType<MigrateReady> = z.object({
  apiKey: z.string().nullable(),
  signInToken: z.string(),
})

/** Null for a line that is no report: a library that prints is a nuisance, not a reason to end. */
export function parseReport(line: string): ProcessReport | null {
  try {
    return reportSchema.parse(JSON.parse(line))
  } catch {
    return null
  }
}
