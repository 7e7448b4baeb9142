// A build of a template: what it is asked to do, and how far it is.

import { z } from 'zod'
import { filesHashSchema } from './template-files.ts'

type LogLine = { timestamp: string; level: 'debug' | 'info' | 'warn' | 'error'; message: string }

export type Build = {
  id: string
  teamId: string
  /** The name of the template, and its tags. */
  name: string
  tags: string[]
  size: 'small' | 'medium' | 'large'
  hasBegun: boolean
  status: 'waiting' | 'building' | 'ready' | 'error'
  log: LogLine[]
  failure: { message: string; step?: string } | null
}

const stepSchema = z.object({
  type: z.string().max(16),
  args: z.array(z.string().max(32_768)).max(200).default([]),
  filesHash: filesHashSchema.nullish(),
})

export const recipeSchema = z.object({
  fromImage: z.string().max(255).nullish(),
  fromTemplate: z.string().max(255).nullish(),
  fromImageRegistry: z.unknown().nullish(),
  startCmd: z.string().max(32_768).nullish(),
  readyCmd: z.string().max(32_768).nullish(),
  steps: z.array(stepSchema).max(500).default([]),
})
export type Recipe = z.output<typeof recipeSchema>

const MAX_LINES = 5000
const LINE = 1000

export function tell(build: Build, level: LogLine['level'], text: string): void {
  const timestamp = new Date().toISOString()
  for (const message of text.split('\n')) {
    if (message !== '' && build.log.length < MAX_LINES)
      build.log.push({ timestamp, level, message: message.slice(0, LINE) })
  }
}
