// Recipes: named templates that create one or more units (spec 2.11, 4.4).

import { z } from 'zod'
import { protocols } from './endpoint.ts'
import { strict } from './fields.ts'
import { sizes } from './policy.ts'

export const recipeItemSchema = strict({
  name: z.string(),
  title: z.string(),
  description: z.string(),
  tags: z.array(z.string()),
}).meta({ id: 'RecipeItem' })
export type RecipeItem = z.infer<typeof recipeItemSchema>

export const recipeListSchema = strict({ recipes: z.array(recipeItemSchema) }).meta({ id: 'RecipeList' })
export type RecipeList = z.infer<typeof recipeListSchema>

export const recipeParameterSchema = strict({
  name: z.string(),
  type: z.enum(['string', 'integer', 'enum', 'record', 'secret']),
  options: z.array(z.string()).nullable().describe('The allowed values of an enum.'),
  defaultValue: z.string().nullable().describe('The default, encoded as JSON.'),
  required: z.boolean(),
  description: z.string().nullable(),
  format: z.string().nullable().describe('The format of a value.'),
}).meta({ id: 'RecipeParameter' })
export type RecipeParameter = z.infer<typeof recipeParameterSchema>

export const recipeSchema = strict({
  ...recipeItemSchema.shape,
  params: z.array(recipeParameterSchema),
  outputs: z
    .array(
      strict({
        name: z.string(),
        description: z.string(),
        secret: z
          .boolean()
          .describe('Whether it contains a generated secret, which only the answer to the create shows.'),
      }),
    )
    .describe('The names of the outputs in the answer to a create, besides `URL` for a published unit.'),
  units: z
    .array(
      strict({
        name: z.string().describe('The default name; the create can set another.'),
        image: z.string(),
        size: z.enum(sizes),
        ports: z.array(z.int()),
        databasePorts: z.array(strict({ port: z.int(), protocol: z.enum(protocols) })),
        volume: strict({ mount: z.string(), gb: z.int() }).nullable(),
      }),
    )
    .describe('The units with default parameters, in the order in which they start.'),
  frontDoor: strict({ unit: z.string(), port: z.int() })
    .nullable()
    .describe(
      'The unit and port that `expose` of a create publishes; null if the recipe cannot be published.',
    ),
}).meta({ id: 'Recipe' })
export type Recipe = z.infer<typeof recipeSchema>
