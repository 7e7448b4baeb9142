// Recipes: databases, runtimes and small applications in one call.

import type { CreateFromRecipe, Recipe, RecipeItem, RecipeList, Recipes as Known } from './contract.ts'
import type { CallOptions, MakeOptions, Transport } from './transport.ts'
import type { Unit } from './unit.ts'
import { makeFrom } from './units.ts'

export type RecipeName = keyof Known

/** Of a recipe that this version knows its own parameters, of another one any. */
export type RunOptions<Name extends string> = Omit<CreateFromRecipe, 'recipe' | 'params'> &
  MakeOptions &
  (Name extends RecipeName
    ? object extends Known[Name]['params']
      ? { params?: Known[Name]['params'] | undefined }
      : { params: Known[Name]['params'] }
    : { params?: Record<string, unknown> | undefined })

export type RecipeOutputs<Name extends string> = (Name extends RecipeName
  ? Known[Name]['outputs']
  : Record<string, string>) & { URL?: string }

export type RecipeResult<Name extends string> = {
  /** The first of its units. */
  unit: Unit
  units: Unit[]
  /** Connection strings and passwords, told this once, and `URL` when published. */
  outputs: RecipeOutputs<Name>
  /** Cost and sleep in words. */
  costLine: string
}

export type Recipes = {
  list: (options?: CallOptions) => Promise<RecipeItem[]>
  /** With its parameters, outputs and units. Throws `not_found`. */
  get: (name: string, options?: CallOptions) => Promise<Recipe>
  /** Makes its units, and waits until they run unless `wait` is false. */
  run: <Name extends RecipeName | (string & {})>(
    name: Name,
    ...options: object extends RunOptions<Name> ? [options?: RunOptions<Name>] : [options: RunOptions<Name>]
  ) => Promise<RecipeResult<Name>>
}

export function recipesOf(transport: Transport): Recipes {
  return {
    list: async (options = {}) =>
      (await transport.json<RecipeList>({ method: 'GET', path: '/v1/recipes', ...options })).recipes,
    get: async (name, options = {}) =>
      await transport.json<Recipe>({
        method: 'GET',
        path: `/v1/recipes/${encodeURIComponent(name)}`,
        ...options,
      }),
    run: async <Name extends string>(recipe: Name, ...[options]: [options?: RunOptions<Name>]) => {
      const { signal, timeoutMs, idempotencyKey, ...asked } = (options ?? {}) as RunOptions<string>
      const made = await makeFrom(transport, { recipe, ...asked }, { signal, timeoutMs, idempotencyKey })
      const { units, outputs, costLine } = made
      return { unit: units[0], units, outputs: outputs as RecipeOutputs<Name>, costLine: costLine ?? '' }
    },
  }
}
