import { readFileSync } from 'node:fs'
import { z } from 'zod'

const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')

/** The version of this Berth. All hosts of one should have the same. */
export const VERSION = z.object({ version: z.string() }).parse(JSON.parse(manifest)).version
