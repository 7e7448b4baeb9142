// Recipes: named templates that make one or more units (spec 2.11, 4.4).

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
  type: z.enum(['string', 'integer', 'enum', 'record']),
  options: z.array(z.string()).nullable().describe('The values allowed for an enum.'),
  defaultValue: z.string().nullable().describe('In JSON.'),
  required: z.boolean(),
  description: z.string().nullable(),
  format: z.string().nullable().describe('What a value looks like.'),
}).meta({ id: 'RecipeParameter' })
export type RecipeParameter = z.infer<typeof recipeParameterSchema>

export const recipeSchema = strict({
  ...recipeItemSchema.shape,
  params: z.array(recipeParameterSchema),
  outputs: z
    .array(strict({ name: z.string(), description: z.string() }))
    .describe('What the answer to a create tells, beside `URL` when it is published.'),
  units: z
    .array(
      strict({
        name: z.string().describe('Where the create says no other name.'),
        image: z.string(),
        size: z.enum(sizes),
        ports: z.array(z.int()),
        databasePorts: z.array(strict({ port: z.int(), protocol: z.enum(protocols) })),
        volume: strict({ mount: z.string(), gb: z.int() }).nullable(),
      }),
    )
    .describe('With every parameter at its default, in the order in which they start.'),
  frontDoor: strict({ unit: z.string(), port: z.int() })
    .nullable()
    .describe('Where `expose` of a create leads; null: it takes none.'),
}).meta({ id: 'Recipe' })
export type Recipe = z.infer<typeof recipeSchema>
