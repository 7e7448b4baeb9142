// POST /v1/units, form B: what a recipe makes (spec 2.4).

import type { App } from '../../app.ts'
import type { CreateFromRecipe } from '../../contract/create.ts'
import { validation } from '../../contract/errors.ts'
import type { RunResult } from '../../contract/run-result.ts'
import type { Caller } from '../credentials/caller.ts'
import type { Once } from '../idempotency/once.ts'
import { createPlanned } from '../units/create.ts'
import { generateSecret } from '../units/env.ts'
import { findRecipe } from './catalog.ts'

export async function createFromRecipe(
  app: App,
  caller: Caller,
  body: CreateFromRecipe,
  once: Once | null,
): Promise<RunResult> {
  const recipe = findRecipe(body.recipe)
  if (body.expose !== undefined && !recipe.hasFrontDoor) {
    throw validation([
      {
        path: 'expose',
        message: `the recipe "${recipe.name}" has no front door; publish its database with POST /v1/units/{id}/expose`,
      },
    ])
  }
  const params = recipe.parse(body.params)
  const secrets = Object.fromEntries(recipe.secrets.map((name) => [name, generateSecret()]))
  const { sleep, stack, expose } = body
  const plan = {
    recipe: recipe.name,
    name: body.name ?? recipe.name,
    isNamed: body.name !== undefined,
    stack,
    expose,
    make: (at: { name: string; stackName: string }) => recipe.make({ ...at, params, secrets, sleep }),
  }
  return await createPlanned(app, caller, { plan, wait: body }, once)
}
