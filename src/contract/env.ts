// A unit's environment: plain values, generated secrets, and credentials that the caller provides (spec 2.3). A
// brokered secret is one whose value the unit never has (secret.ts).

import { z } from 'zod'
import { strict, text, variablePattern } from './fields.ts'
import { limits } from './limits.ts'
import {
  brokeredValueSchema,
  placeholderSchema,
  secretHostsSchema,
  secretMethodsSchema,
  secretNameSchema,
  secretPathsSchema,
  shownRequests,
} from './secret.ts'

const variableName = text(limits.envNameLength).regex(
  variablePattern,
  'a name must begin with a letter or _ and hold only letters, digits, and _ . -',
)

const plainValue = text(limits.envValueLength)

const ownSecret = strict({
  secret: secretNameSchema,
  value: plainValue.optional(),
  hosts: secretHostsSchema
    .optional()
    .describe(
      'With hosts the unit gets a placeholder, and the value goes into its requests to these hosts alone.',
    ),
  methods: secretMethodsSchema.optional(),
  paths: secretPathsSchema.optional(),
  placeholder: placeholderSchema.optional().describe('Default: random.'),
}).superRefine(checkBrokered)

const teamSecret = strict({
  teamSecret: secretNameSchema.describe('A secret of the team; the unit gets its placeholder.'),
})

const secretForms = '{ "secret": NAME }, { "secret": NAME, "value": VALUE } or { "teamSecret": NAME }'

const inputEntry = z.union([plainValue, ownSecret, teamSecret], { error: `must be a string, ${secretForms}` })
type InputEntry = z.infer<typeof inputEntry>
export type EnvInput = Record<string, InputEntry>

export const envInputSchema = z
  .record(variableName, inputEntry)
  .refine((env) => Object.keys(env).length <= limits.envEntries, {
    error: `must have at most ${limits.envEntries} entries`,
    abort: true,
  })
  .refine((env) => envBytes(env) <= limits.envBytes, {
    error: `must be at most ${limits.envBytes} bytes in all, names and values`,
  })
  .refine((env) => !hasTwoValues(env), { error: 'one secret is given two different values, or hosts' })
  .refine((env) => brokeredNames(env).size <= limits.unitSecrets, {
    error: `must have at most ${limits.unitSecrets} secrets with hosts or of the team`,
  })

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

/** As an answer shows it: a secret by its name only, and a brokered one with its hosts. */
export const envSchema = z.record(
  z.string(),
  z.union([
    z.string(),
    strict({ secret: z.string(), hosts: z.array(z.string()).optional(), ...shownRequests }),
    strict({ teamSecret: z.string() }),
  ]),
)
export type Env = z.infer<typeof envSchema>

/** A secret that the unit itself or its stack owns. */
export function isOwnSecret<T extends object>(entry: string | T): entry is Extract<T, { secret: string }> {
  return typeof entry !== 'string' && 'secret' in entry
}

/** Returns the names of the team's secrets that an environment binds. */
export function teamSecretsOf(env: Env | EnvInput): string[] {
  const names = Object.values(env).flatMap((entry) =>
    typeof entry !== 'string' && 'teamSecret' in entry ? [entry.teamSecret] : [],
  )
  return [...new Set(names)]
}

const ofBrokered = new Set(['placeholder', 'methods', 'paths'])

type OwnSecret = {
  value?: string | undefined
  hosts?: string[] | undefined
  methods?: string[] | undefined
  paths?: string[] | undefined
  placeholder?: string | undefined
}

function checkBrokered(
  { value, hosts, placeholder, ...requests }: OwnSecret,
  context: z.RefinementCtx,
): void {
  const wrong = (field: string, message: string) => {
    context.addIssue({ code: 'custom', path: [field], message })
  }
  if (hosts === undefined) {
    for (const [field, given] of Object.entries({ placeholder, ...requests }))
      if (given !== undefined && ofBrokered.has(field)) wrong(field, 'is for a secret with "hosts"')
    return
  }
  if (value === undefined)
    return wrong('value', 'is required with "hosts": only a given value can be brokered')
  const [issue] = brokeredValueSchema.safeParse(value).error?.issues ?? []
  if (issue) wrong('value', issue.message)
  if (placeholder?.includes(value)) wrong('placeholder', 'must not contain the value')
}

/** Of the unit's own and of the team's secrets, told apart. */
function brokeredNames(env: EnvInput): Set<string> {
  const own = Object.values(env).flatMap((entry) =>
    isOwnSecret(entry) && entry.hosts !== undefined ? [`own ${entry.secret}`] : [],
  )
  return new Set([...own, ...teamSecretsOf(env).map((name) => `team ${name}`)])
}

function envBytes(env: EnvInput): number {
  return Object.entries(env).reduce((total, [name, entry]) => {
    const value = typeof entry === 'string' ? entry : isOwnSecret(entry) ? (entry.value ?? '') : ''
    return total + Buffer.byteLength(name) + Buffer.byteLength(value)
  }, 0)
}

function hasTwoValues(env: EnvInput): boolean {
  const given = new Map<string, string>()
  return Object.values(env).some((entry) => {
    if (!isOwnSecret(entry) || entry.value === undefined) return false
    const { value, hosts = null, methods = null, paths = null, placeholder = null } = entry
    const meant = JSON.stringify([value, hosts, methods, paths, placeholder])
    const known = given.get(entry.secret)
    given.set(entry.secret, meant)
    return known !== undefined && known !== meant
  })
}
