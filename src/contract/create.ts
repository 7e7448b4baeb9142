// POST /v1/units: form A from a spec, form B from a recipe (spec 2.4).

import { z } from 'zod'
import { endpointModes } from './endpoint.ts'
import { strict, text } from './fields.ts'
import { limits } from './limits.ts'
import { sleepSchema } from './sleep.ts'
import { nameSchema, unitSpecSchema } from './unit-spec.ts'

/** What makes units answers once they are ready, or after a while (spec 2.4, 2.7). */
export const waitFields = {
  wait: z.boolean().default(true).describe('Answer once the units are ready.'),
  waitTimeoutMs: z
    .int()
    .min(0)
    .max(limits.waitTimeoutMs.max)
    .default(limits.waitTimeoutMs.default)
    .describe('A unit still creating after this is on its way.'),
}

const stackField = nameSchema.optional().describe('Name of a stack; created if absent.')

export const createFromSpecSchema = strict({
  spec: unitSpecSchema,
  stack: stackField,
  expose: z
    .enum(endpointModes)
    .optional()
    .describe(
      'Publish as it is created: `spec.expose`, or the only one of `spec.ports`. Answered as `outputs.URL`.',
    ),
  ...waitFields,
}).meta({ id: 'CreateFromSpec' })
export type CreateFromSpec = z.infer<typeof createFromSpecSchema>

export const createFromRecipeSchema = strict({
  recipe: text(64).describe('Its name, as `GET /v1/recipes` lists it.'),
  params: z
    .record(z.string(), z.unknown())
    .default({})
    .describe('As `GET /v1/recipes/{name}` describes them; null means the default.'),
  name: nameSchema
    .optional()
    .describe(
      "What its unit is called, and what the names of its other units begin with; the recipe's name.",
    ),
  stack: stackField,
  expose: z
    .enum(endpointModes)
    .optional()
    .describe('Publish its front door as it is created. Answered as `outputs.URL`.'),
  sleep: sleepSchema.optional().describe('One window for every unit it makes.'),
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

/** The form a body means, so that what is wrong with it is told in that form's words. */
export function createFormOf(
  body: unknown,
): typeof createFromSpecSchema | typeof createFromRecipeSchema | typeof neitherFormSchema {
  const has = (field: string) => typeof body === 'object' && body !== null && Object.hasOwn(body, field)
  if (has('recipe')) return createFromRecipeSchema
  return has('spec') ? createFromSpecSchema : neitherFormSchema
}
