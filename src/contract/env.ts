// A unit's environment: plain values, generated secrets, and credentials that the caller provides (spec 2.3).

import { z } from 'zod'
import { strict, text, variablePattern } from './fields.ts'
import { limits } from './limits.ts'

const variableName = text(limits.envNameLength).regex(
  variablePattern,
  'a name must begin with a letter or _ and hold only letters, digits, and _ . -',
)

const secretName = z
  .string()
  .min(1)
  .max(limits.secretNameLength, `must be at most ${limits.secretNameLength} characters`)
  .regex(variablePattern, 'must begin with a letter or _ and hold only letters, digits, and _ . -')

const plainValue = text(limits.envValueLength)

export const envInputSchema = z
  .record(
    variableName,
    z.union([plainValue, strict({ secret: secretName, value: plainValue.optional() })], {
      error: 'must be a string, { "secret": NAME } or { "secret": NAME, "value": VALUE }',
    }),
  )
  .refine((env) => Object.keys(env).length <= limits.envEntries, {
    error: `must have at most ${limits.envEntries} entries`,
    abort: true,
  })
  .refine((env) => envBytes(env) <= limits.envBytes, {
    error: `must be at most ${limits.envBytes} bytes in all, names and values`,
  })
  .refine((env) => !hasTwoValues(env), { error: 'one secret is given two different values' })

/** The environment of one process: plain values only, which are not stored. */
export const processEnvSchema = z
  .record(variableName, plainValue)
  .refine((env) => Object.keys(env).length <= limits.envEntries, {
    error: `must have at most ${limits.envEntries} entries`,
    abort: true,
  })
  .refine((env) => envBytes(env) <= limits.envBytes, {
    error: `must be at most ${limits.envBytes} bytes in all, names and values`,
  })

export type EnvInput = z.infer<typeof envInputSchema>

/** As an answer shows it: a secret by its name only. */
export const envSchema = z.record(z.string(), z.union([z.string(), strict({ secret: z.string() })]))
export type Env = z.infer<typeof envSchema>

function envBytes(env: Record<string, string | { value?: string | undefined }>): number {
  return Object.entries(env).reduce((total, [name, entry]) => {
    const value = typeof entry === 'string' ? entry : (entry.value ?? '')
    return total + Buffer.byteLength(name) + Buffer.byteLength(value)
  }, 0)
}

function hasTwoValues(env: Record<string, string | { secret: string; value?: string | undefined }>): boolean {
  const values = new Map<string, string>()
  return Object.values(env).some((entry) => {
    if (typeof entry === 'string' || entry.value === undefined) return false
    const known = values.get(entry.secret)
    values.set(entry.secret, entry.value)
    return known !== undefined && known !== entry.value
  })
}
