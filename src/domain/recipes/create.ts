// POST /v1/units, form B: creates the units of a recipe (spec 2.4).

import type { App } from '../../app.ts'
import type { CreateFromRecipe } from '../../contract/create.ts'
import { type AppError, validation } from '../../contract/errors.ts'
import type { RunResult } from '../../contract/run-result.ts'
import type { Caller } from '../credentials/caller.ts'
import type { Once } from '../idempotency/once.ts'
import { createPlanned } from '../units/create.ts'
import { generateSecret } from '../units/model/env.ts'
import type { PlannedUnits } from '../units/model/plan.ts'
import { findRecipe } from './catalog.ts'
import type { AskedOfAll, Recipe } from './define.ts'

export async function createFromRecipe(
  app: App,
  caller: Caller,
  body: CreateFromRecipe,
  once: Once | null,
): Promise<RunResult> {
  const recipe = findRecipe(body.recipe)
  const params = recipe.parse(body.params)
  const secrets = Object.fromEntries(recipe.secrets.map((name) => [name, generateSecret()]))
  const { stack, expose, name = recipe.name } = body
  const asked = askedOfAll(body)
  const make = (at: { name: string; stackName: string }) => recipe.make({ ...at, params, secrets, asked })
  if (expose !== undefined && !recipe.hasFrontDoor) throw noFrontDoor(recipe, make({ name, stackName: name }))
  const isNamed = body.name !== undefined
  const plan = { recipe: recipe.name, name, isNamed, stack, expose, make }
  return await createPlanned(app, caller, { plan, wait: body }, once)
}

/** Without what was left out, which then keeps its default. */
function askedOfAll({ sleep, egress, metadata, timeToLive, atEnd }: CreateFromRecipe): AskedOfAll {
  const given = Object.entries({ sleep, egress, metadata, timeToLive, atEnd })
  return Object.fromEntries(given.filter(([, value]) => value !== undefined))
}

function noFrontDoor({ name }: Recipe, { units }: PlannedUnits): AppError {
  const isDatabase = units.some(({ databasePorts }) => databasePorts.length > 0)
  const instead = isDatabase
    ? 'publish its database with POST /v1/units/{id}/expose'
    : 'leave "expose" out, and publish a port of its unit with POST /v1/units/{id}/expose once something listens there'
  return validation([{ path: 'expose', message: `the recipe "${name}" has no default port; ${instead}` }])
}
