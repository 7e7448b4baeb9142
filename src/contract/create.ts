// POST /v1/units: form A from a spec, form B from a recipe (spec 2.4).

import { z } from 'zod'
import { egressAskedSchema } from './egress.ts'
import { endpointModes } from './endpoint.ts'
import { strict, text } from './fields.ts'
import { limits } from './limits.ts'
import { metadataSchema } from './metadata.ts'
import { sleepSchema } from './sleep.ts'
import { timeToLiveFields } from './time-to-live.ts'
import { nameSchema, unitSpecSchema } from './unit-spec.ts'

/** For calls that create units: they answer once the units are ready, or after a timeout (spec 2.4, 2.7). */
export const waitFields = {
  wait: z.boolean().default(true).describe('Whether to answer only once the units are ready.'),
  waitTimeoutMs: z
    .int()
    .min(0)
    .max(limits.waitTimeoutMs.max)
    .default(limits.waitTimeoutMs.default)
    .describe('After this time the call answers, although the unit may still be `creating`.'),
}

const stackField = nameSchema.optional().describe('Name of a stack; created if absent.')

export const createFromSpecSchema = strict({
  spec: unitSpecSchema,
  stack: stackField,
  expose: z
    .enum(endpointModes)
    .optional()
    .describe(
      'Publish a port at once: `spec.expose`, or the only one of `spec.ports`. The answer has the URL in `outputs.URL`.',
    ),
  ...waitFields,
}).meta({ id: 'CreateFromSpec' })
export type CreateFromSpec = z.infer<typeof createFromSpecSchema>

export const createFromRecipeSchema = strict({
  recipe: text(64).describe('The name of a recipe, as in `GET /v1/recipes`.'),
  params: z
    .record(z.string(), z.unknown())
    .default({})
    .describe('The parameters of the recipe, as in `GET /v1/recipes/{name}`; null means the default.'),
  name: nameSchema
    .optional()
    .describe(
      "The name of the recipe's main unit, and the prefix of its other units' names. Default: the recipe's name.",
    ),
  stack: stackField,
  expose: z
    .enum(endpointModes)
    .optional()
    .describe("Publish the recipe's default port at once. The answer has the URL in `outputs.URL`."),
  sleep: sleepSchema.optional().describe('The idle window of every unit that the recipe creates.'),
  egress: egressAskedSchema
    .optional()
    .describe(
      'What every unit that the recipe creates may reach. Default: what the credential and its team allow.',
    ),
  metadata: metadataSchema.optional().describe('Labels of yours, for every unit that the recipe creates.'),
  ...timeToLiveFields,
  ...waitFields,
}).meta({ id: 'CreateFromRecipe' })
export type CreateFromRecipe = z.infer<typeof createFromRecipeSchema>

export type Create = CreateFromSpec | CreateFromRecipe

export const createSchema = z.union([createFromSpecSchema, createFromRecipeSchema])

const eitherForm =
  'send a spec, as {"spec": {"name": "web", "image": "node:22"}}, or a recipe, as {"recipe": "postgres"}; ' +
  'GET /v1/recipes lists the recipes'

const neitherFormSchema = z
  .unknown()
  .superRefine((_body, context) => context.addIssue({ code: 'custom', path: ['spec'], message: eitherForm }))

/** Chooses the form that a body means, so that errors are reported in the terms of that form. */
export function createFormOf(
  body: unknown,
): typeof createFromSpecSchema | typeof createFromRecipeSchema | typeof neitherFormSchema {
  const has = (field: string) => typeof body === 'object' && body !== null && Object.hasOwn(body, field)
  if (has('recipe')) return createFromRecipeSchema
  return has('spec') ? createFromSpecSchema : neitherFormSchema
}
