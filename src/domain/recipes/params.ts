// The parameters of recipes: a schema that validates the values, and their description (spec 2.11).

import { z } from 'zod'
import { type EnvInput, envInputSchema } from '../../contract/env.ts'
import { strict, text } from '../../contract/fields.ts'
import { type BootFiles, bootFilesSchema } from '../../contract/files.ts'
import { isPlainPath } from '../../contract/file-paths.ts'
import { limits } from '../../contract/limits.ts'
import { type Size, sizes } from '../../contract/policy.ts'
import type { RecipeParameter } from '../../contract/recipe.ts'
import { brokeredValueSchema, secretNameSchema } from '../../contract/secret.ts'
import type { requestMethods } from '../../lib/egress/secret-requests.ts'

export type Param<T> = {
  schema: z.ZodType<T>
  shown: Omit<RecipeParameter, 'name' | 'defaultValue' | 'required'>
} & (
  | { fallback: T }
  /** A required parameter, with this example. */
  | { example: unknown }
)

/** Text that matches a pattern; `format` describes the pattern. Without a fallback it must be given. */
export function string(
  description: string,
  {
    pattern,
    format,
    ...rest
  }: { pattern: RegExp; format: string } & ({ fallback: string } | { example: string }),
): Param<string> {
  const schema = text(200).regex(pattern, `must be ${format}`)
  return { schema, shown: { type: 'string', options: null, description, format }, ...rest }
}

/** A name that all supported databases accept without quotes, except names that a database reserves. */
export function identifier(
  description: string,
  fallback: string,
  { taken = [] }: { taken?: readonly string[] } = {},
): Param<string> {
  const others = taken.length === 0 ? '' : `, and not ${taken.join(', ')}`
  const format = `1 to 63 lower-case letters, digits and _, beginning with a letter${others}`
  const isTaken = taken.map((name) => name.replace('*', '.*')).join('|')
  const pattern = new RegExp(`^${isTaken === '' ? '' : `(?!(?:${isTaken})$)`}[a-z][a-z0-9_]{0,62}$`)
  return string(description, { pattern, format, fallback })
}

export function integer(
  description: string,
  { min, max, fallback }: { min: number; max: number; fallback: number },
): Param<number> {
  const format = `a whole number from ${min} to ${max}`
  const schema = z.int(`must be ${format}`).min(min, `must be ${format}`).max(max, `must be ${format}`)
  return { schema, shown: { type: 'integer', options: null, description, format }, fallback }
}

export function size(fallback: Size, description = 'Its size: CPU and memory.'): Param<Size> {
  const schema = z.enum(sizes, `must be one of ${sizes.join(', ')}`)
  return { schema, shown: { type: 'enum', options: [...sizes], description, format: null }, fallback }
}

export function volumeGb(fallback: number): Param<number> {
  return integer('The size of its volume in GB.', { ...limits.volumeGb, fallback })
}

/** The caller's files, below one directory. */
export function files(
  directory: string,
  { description, example }: { description: string; example: Record<string, string> },
): Param<BootFiles> {
  const schema = z
    .record(
      z.string().refine((path) => isPlainPath(`/${path}`), {
        error: `must be a path below ${directory}, such as "src/index.js", without a leading slash, "." or ".."`,
      }),
      z.unknown(),
    )
    .transform((given) =>
      Object.fromEntries(Object.entries(given).map(([path, content]) => [`${directory}/${path}`, content])),
    )
    .pipe(bootFilesSchema)
    .refine((given) => Object.keys(given).length > 0, { error: 'must hold at least one file' })
  const format = `an object: a path below ${directory} to its text, or to { "base64": CONTENT }; at most ${limits.bootFiles} files and 256 KB in all`
  return { schema, shown: { type: 'record', options: null, description, format }, example }
}

/** Environment variables, except those that the recipe itself sets. */
export function env({ taken = [] }: { taken?: readonly string[] } = {}): Param<EnvInput> {
  const others = taken.length === 0 ? '' : `; ${taken.join(', ')} is set already`
  const format = `an object: a name to its text, to { "secret": NAME }, or to { "secret": NAME, "value": TEXT }${others}`
  const description = 'Its environment, as in the spec of a unit.'
  return {
    schema: envInputSchema.refine((given) => !taken.some((name) => Object.hasOwn(given, name)), {
      error: `may not have ${taken.join(', ')}: it is set already`,
    }),
    shown: { type: 'record', options: null, description, format },
    fallback: {},
  }
}

/** Of the team by its name, or a value for this unit alone. */
export type GivenSecret = { teamSecret: string } | { value: string }

/**
 * A brokered secret: the recipe says to which requests a value of its own goes (`brokered`), and one of the team has its rules.
 * Null, where that is the default, means that there is none.
 */
export function secret<T extends GivenSecret | null>(
  description: string,
  fallback: T,
): Param<GivenSecret | T> {
  const format =
    'an object: { "teamSecret": NAME } for a secret of the team, or { "value": TEXT } for this unit alone'
  const schema = z.union([strict({ teamSecret: secretNameSchema }), strict({ value: brokeredValueSchema })], {
    error: `must be ${format}`,
  })
  return { schema, shown: { type: 'secret', options: null, description, format }, fallback }
}

export type Requests = { hosts: string[]; methods: (typeof requestMethods)[number][]; paths: string[] }

/** Returns the variable's entry for the environment of a unit: a placeholder there, the value in these requests alone. */
export function brokered(name: string, given: GivenSecret, requests: Requests): EnvInput[string] {
  return 'teamSecret' in given ? given : { secret: name, value: given.value, ...requests }
}
