// Tools about recipes.

import { z } from 'zod'
import { strict, text } from '../../../contract/fields.ts'
import type { Recipe, RecipeList } from '../../../contract/recipe.ts'
import type { RunResult } from '../../../contract/run-result.ts'
import { creationStep } from '../../../domain/units/creation-step.ts'
import { defineTool, hints, recordResult, type Tool } from '../tool.ts'
import { exposeArgument, nameArgument, sleepArgument, waitArgument, waitFor } from './arguments.ts'
import { unitsRecordSchema } from './records.ts'
import { runRecord } from './units.ts'

const createFromRecipe = defineTool({
  name: 'create_from_recipe',
  title: 'Create from a recipe',
  description:
    'Start a database, runtime or app from a template: one or more units with passwords and health checks set up. Answers connection strings once; keep them. See list_recipes for names and parameters.',
  input: strict({
    recipe: text(64).describe('Such as "postgres", "redis", "python".'),
    params: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('As list_recipes(recipe) tells. A language recipe takes { "files": { PATH: TEXT } }.'),
    name: nameArgument.optional(),
    stack: nameArgument.optional(),
    expose: exposeArgument.optional(),
    sleep: sleepArgument.optional(),
    wait_seconds: waitArgument,
  }),
  output: unitsRecordSchema,
  hints: hints.adds,
  operation: 'POST /v1/units',
  ask: (_app, _caller, { wait_seconds, stack, ...asked }) => ({
    // Each unit gets its own stack by default, so a repeated call finds the units of the first.
    body: { ...asked, stack: stack ?? asked.name ?? asked.recipe, ...waitFor(wait_seconds) },
  }),
  progress: async (app, caller, { recipe, name, stack }) => {
    const first = name ?? recipe
    return await creationStep(app, caller, { name: first, stack: stack ?? first })
  },
  result: (made: RunResult) => recordResult(runRecord(made)),
})

const listRecipes = defineTool({
  name: 'list_recipes',
  title: 'List recipes',
  description: 'Templates for create_from_recipe. With recipe: its parameters, outputs and units.',
  input: strict({ recipe: text(64).optional().describe("A recipe's name.") }),
  hints: hints.reads,
  operation: ({ recipe }) => (recipe === undefined ? 'GET /v1/recipes' : 'GET /v1/recipes/{name}'),
  target: 'recipe',
  ask: (_app, _caller, { recipe }) => (recipe === undefined ? {} : { params: { name: recipe } }),
  result: (told: RecipeList | Recipe) =>
    recordResult(
      'recipes' in told
        ? { recipes: told.recipes.map(({ name, description }) => ({ name, description })) }
        : { ...told },
    ),
})

export const recipeTools: readonly Tool[] = [createFromRecipe, listRecipes]
