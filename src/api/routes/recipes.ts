// Recipes (spec 4.4). POST /v1/units creates units from a recipe.

import { z } from 'zod'
import { recipeListSchema, recipeSchema } from '../../contract/recipe.ts'
import { getRecipe, listRecipes } from '../../domain/recipes/list.ts'
import { noBody } from '../http/body.ts'
import { defineRoute, noParams, noQuery, type Route } from '../route.ts'

const aboutRecipes = {
  method: 'GET',
  noun: 'recipe',
  kind: 'read',
  query: noQuery,
  body: noBody,
  record: () => null,
} as const

const list = defineRoute({
  ...aboutRecipes,
  path: '/v1/recipes',
  summary: 'List the recipes',
  action: 'recipe.list',
  params: noParams,
  response: recipeListSchema,
  errors: [],
  target: () => null,
  handle: async () => listRecipes(),
})

const get = defineRoute({
  ...aboutRecipes,
  path: '/v1/recipes/{name}',
  summary: 'Get a recipe: its parameters, outputs and units',
  action: 'recipe.get',
  params: z.strictObject({ name: z.string().regex(/^[a-z0-9_-]{1,64}$/) }),
  response: recipeSchema,
  errors: [404],
  target: ({ params }) => params.name,
  handle: async (_app, { params }) => getRecipe(params.name),
})

export const recipeRoutes: readonly Route[] = [list, get]
