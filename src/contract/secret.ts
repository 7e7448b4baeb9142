// Brokered secrets: a unit holds a placeholder, and the value is put into its requests to some hosts on their way out
// (decisions/brokered-secrets.md). A team's secrets have names, and units bind them; a unit has its own in its environment
// (env.ts).

import { z } from 'zod'
import { canonicalHostName } from '../lib/egress/entry.ts'
import { isSecretPath, requestMethods } from '../lib/egress/secret-requests.ts'
import { brokeredLimits, isBrokeredValue, isPlaceholder } from '../lib/egress/secrets.ts'
import { strict, text, timestamp, variablePattern } from './fields.ts'
import { limits } from './limits.ts'

export const secretNameSchema = z
  .string()
  .min(1)
  .max(limits.secretNameLength, `must be at most ${limits.secretNameLength} characters`)
  .regex(variablePattern, 'must begin with a letter or _ and hold only letters, digits, and _ . -')

/** In a policy, every secret of the team. */
export const EVERY_SECRET = '*'

/** The team's secrets that units of a credential may bind. */
export const allowedSecretsSchema = z
  .array(
    z.string().refine((name) => name === EVERY_SECRET || secretNameSchema.safeParse(name).success, {
      error: 'must be the name of a secret of the team, or "*" for all',
    }),
  )
  .max(limits.teamSecrets, `must have at most ${limits.teamSecrets} entries`)
  .overwrite((names) => [...new Set(names)])

/** Whether a policy gives the right to put and delete the team's secrets. */
export function grantsEverySecret({
  allowedSecrets = [],
}: {
  allowedSecrets?: string[] | undefined
}): boolean {
  return allowedSecrets.includes(EVERY_SECRET)
}

const host = text(limits.egressEntryLength)
  .superRefine((value, context) => {
    if (canonicalHostName(value) === null) context.addIssue({ code: 'custom', message: faultOf(value) })
  })
  .overwrite((value) => canonicalHostName(value) ?? value)

/** The hosts to which a value goes, exactly: an API below a wildcard could answer with what it was sent. */
export const secretHostsSchema = z
  .array(host)
  // Not by max(), which ends a parse: within the union of an environment the sentence would be lost.
  .refine((hosts) => hosts.length > 0, { error: 'must have at least 1 host, such as "api.openai.com"' })
  .refine((hosts) => hosts.length <= limits.secretHosts, {
    error: `must have at most ${limits.secretHosts} hosts`,
  })
  .overwrite((hosts) => [...new Set(hosts)])
  .meta({ minItems: 1, maxItems: limits.secretHosts })

/** For which requests to its hosts a secret is. */
export const secretMethodsSchema = z
  .array(z.enum(requestMethods, { error: `must be one of ${requestMethods.join(', ')}` }))
  .refine((methods) => methods.length > 0, { error: 'must have at least 1 method; leave it out for all' })
  .overwrite((methods) => [...new Set(methods)])
  .meta({ minItems: 1 })
  .describe('The methods of the requests that the secret is for. Default: all.')

const secretPath = text(brokeredLimits.pathLength).refine(isSecretPath, {
  error: 'must be a path such as "/v1/messages", or "/v1/files/*" for all below it',
})

export const secretPathsSchema = z
  .array(secretPath)
  .refine((paths) => paths.length > 0, { error: 'must have at least 1 path; leave it out for all' })
  .refine((paths) => paths.length <= limits.secretPaths, {
    error: `must have at most ${limits.secretPaths} paths`,
  })
  .overwrite((paths) => [...new Set(paths)])
  .meta({ minItems: 1, maxItems: limits.secretPaths })
  .describe('The paths of the requests that the secret is for, exact or with `/*` at the end. Default: all.')

/** As answers show them. */
export const shownRequests = {
  methods: z.array(z.string()).optional().describe('Present if the secret is for these methods alone.'),
  paths: z.array(z.string()).optional().describe('Present if the secret is for these paths alone.'),
}

export const brokeredValueSchema = text(brokeredLimits.valueLength)
  .refine(isBrokeredValue, {
    error:
      'must be one line of visible ASCII, without a blank at its ends, since it stands in the header of a request',
  })
  .meta({ pattern: '^[!-~](?:[ -~]*[!-~])?$' })

const { min, max } = brokeredLimits.placeholderLength

/** What the unit has in place of the value. A program that looks at a key's form needs one of that form. */
export const placeholderSchema = z
  .string()
  .refine(isPlaceholder, { error: `must be ${min} to ${max} letters, digits, _ and -` })

export const secretSchema = strict({
  name: z.string(),
  hosts: z.array(z.string()).describe('The hosts to which the value goes, on port 443 alone.'),
  ...shownRequests,
  placeholder: z.string().describe('What units have in place of the value.'),
  units: z.int().describe('How many units bind it.'),
  createdAt: timestamp,
  updatedAt: timestamp,
}).meta({ id: 'Secret' })
export type Secret = z.infer<typeof secretSchema>

/** GET /v1/secrets. */
export const secretListSchema = strict({
  secrets: z.array(secretSchema).describe('By name; never a value.'),
}).meta({ id: 'SecretList' })
export type SecretList = z.infer<typeof secretListSchema>

/** PUT /v1/secrets/{name}. */
export const secretPutSchema = strict({
  value: brokeredValueSchema.describe('No answer shows it.'),
  hosts: secretHostsSchema.describe('Exact names, such as `api.openai.com`.'),
  methods: secretMethodsSchema.optional(),
  paths: secretPathsSchema.optional(),
  placeholder: placeholderSchema
    .optional()
    .describe(
      'What units have in place of the value, for programs that check the form of a key. It stays for the life of the secret. Default: random.',
    ),
})
  .refine(({ value, placeholder }) => placeholder === undefined || !placeholder.includes(value), {
    path: ['placeholder'],
    error: 'must not contain the value',
  })
  .meta({ id: 'SecretPut' })
export type SecretPut = z.infer<typeof secretPutSchema>

export const secretAnswerSchema = strict({ secret: secretSchema }).meta({ id: 'SecretAnswer' })
export type SecretAnswer = z.infer<typeof secretAnswerSchema>

/** DELETE /v1/secrets/{name}. */
export const secretDeletedSchema = strict({
  ok: z.literal(true),
  unbound: z
    .array(strict({ id: z.string(), name: z.string() }))
    .describe('The units that had it. They run on without it.'),
}).meta({ id: 'SecretDeleted' })
export type SecretDeleted = z.infer<typeof secretDeletedSchema>

/** PUT /v1/units/{id}/secrets/{name}. */
export const unitSecretPutSchema = strict({
  value: brokeredValueSchema.describe('No answer shows it.'),
  hosts: secretHostsSchema.optional().describe('Default: those that it has.'),
  methods: secretMethodsSchema.nullish().describe('Null for all. Default: those that it has.'),
  paths: secretPathsSchema.nullish().describe('Null for all. Default: those that it has.'),
}).meta({ id: 'UnitSecretPut' })
export type UnitSecretPut = z.infer<typeof unitSecretPutSchema>

export const unitSecretSchema = strict({
  name: z.string(),
  hosts: z.array(z.string()),
  ...shownRequests,
  placeholder: z.string().describe('What the unit has in place of the value; it stays.'),
}).meta({ id: 'UnitSecret' })
export type UnitSecret = z.infer<typeof unitSecretSchema>

function faultOf(value: string): string {
  if (value.includes('*')) return 'must be an exact name: a secret goes to no host behind a wildcard'
  if (canonicalHostName(value.replace(/:\d+$/, '')) !== null) {
    return 'must be a name without a port: secrets are put into requests to port 443 alone'
  }
  return 'must be the name of a public host such as "api.openai.com", and no address'
}
