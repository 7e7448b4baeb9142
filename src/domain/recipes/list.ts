// Recipes, as answers show them (spec 2.11, 4.4).

import type { Recipe as ShownRecipe, RecipeItem, RecipeList } from '../../contract/recipe.ts'
import { findRecipe, recipes } from './catalog.ts'
import { exampleOf, type Recipe } from './define.ts'

export function listRecipes(): RecipeList {
  return { recipes: recipes.map(showItem) }
}

/** Stands for each generated secret, so that the outputs that contain one are known. */
const GENERATED = 'a-generated-secret'

/** Throws `not_found`. */
export function getRecipe(name: string): ShownRecipe {
  const recipe = findRecipe(name)
  const secrets = Object.fromEntries(recipe.secrets.map((secret) => [secret, GENERATED]))
  const params = recipe.parse(exampleOf(recipe))
  const made = recipe.make({ name, stackName: name, params, secrets })
  return {
    ...showItem(recipe),
    params: Object.entries(recipe.params).map(([key, param]) => ({
      name: key,
      ...param.shown,
      defaultValue: 'fallback' in param ? JSON.stringify(param.fallback) : null,
      required: !('fallback' in param),
    })),
    outputs: recipe.outputs.map((output) => ({
      ...output,
      secret: made.outputs[output.name]?.includes(GENERATED) ?? false,
    })),
    units: made.units.map(({ spec, databasePorts }) => ({
      name: spec.name,
      image: spec.image,
      size: spec.size,
      ports: spec.ports,
      databasePorts,
      volume: spec.volume ?? null,
    })),
    frontDoor: made.frontDoor,
  }
}

function showItem({ name, title, description, tags }: Recipe): RecipeItem {
  return { name, title, description, tags: [...tags] }
}
