// The type of a recipe. Each recipe is a short file in catalog/ (docs/adding-a-recipe.md) and is checked when the
// service starts.

import type { z } from 'zod'
import { validation } from '../../contract/errors.ts'
import type { Protocol } from '../../contract/endpoint.ts'
import { parse } from '../../contract/parse.ts'
import { nameSchema, unitSpecSchema } from '../../contract/unit-spec.ts'
import { searchDomain, withSuffix } from '../units/model/names.ts'
import type { PlannedUnits } from '../units/model/plan.ts'
import type { Param } from './params.ts'

type Params = Record<string, Param<unknown>>
type Values<P extends Params> = { [K in keyof P]: P[K] extends Param<infer T> ? T : never }

/** What the caller asks for every unit that the recipe creates. */
export type AskedOfAll = Partial<
  Pick<z.input<typeof unitSpecSchema>, 'sleep' | 'egress' | 'metadata' | 'timeToLive' | 'atEnd'>
>

/** The spec of a unit without its name, which follows from its role: `main` has the name that the caller chose. */
export type RecipeUnit = Omit<z.input<typeof unitSpecSchema>, 'name' | 'expose' | keyof AskedOfAll> & {
  databasePorts?: { port: number; protocol: Protocol }[]
}

export type RecipeContext<P extends Params, Role extends string, Secret extends string> = {
  params: Values<P>
  /** A password generated for this create only: letters, digits, - and _. */
  secret: Record<Secret, string>
  /** The name of each unit in its stack, also in a fork of the stack. */
  unit: Record<Role, string>
  /** The host name of each unit in the team. */
  host: Record<Role, string>
}

export type Definition<P extends Params, Role extends string, Secret extends string> = {
  name: string
  title: string
  description: string
  tags: readonly string[]
  params: P
  secrets: readonly Secret[]
  /** In the order in which they start. */
  units: Record<Role, (at: RecipeContext<P, Role, Secret>) => RecipeUnit>
  /** The unit and port that a URL leads to; null if the recipe is not a web server. */
  frontDoor: { unit: NoInfer<Role>; port: number } | null
  outputs: Record<string, { description: string; value: (at: RecipeContext<P, Role, Secret>) => string }>
}

/** A recipe without its type parameters, so that recipes fit in one list. */
export type Recipe = Pick<
  Definition<Params, string, string>,
  'name' | 'title' | 'description' | 'tags' | 'params' | 'secrets'
> & {
  hasFrontDoor: boolean
  outputs: { name: string; description: string }[]
  /** Validates the parameters and fills in defaults. Throws `validation`. */
  parse(given: Record<string, unknown>): Record<string, unknown>
  /** Pure: the same values and secrets give the same units. */
  make(at: {
    name: string
    stackName: string
    params: Record<string, unknown>
    secrets: Record<string, string>
    /** The fields of a spec that the create asks for every unit. */
    asked?: AskedOfAll
  }): PlannedUnits
}

export function defineRecipe<P extends Params, Role extends string, Secret extends string>(
  definition: Definition<P, Role, Secret>,
): Recipe {
  const { units, outputs, frontDoor, ...described } = definition
  const roles = Object.keys(units) as Role[]
  const recipe: Recipe = {
    ...described,
    hasFrontDoor: frontDoor !== null,
    outputs: Object.entries<{ description: string }>(outputs).map(([name, { description }]) => ({
      name,
      description,
    })),
    parse: (given) => parseParams(definition.params, given),
    make: ({ name, stackName, params, secrets, asked = {} }) => {
      const named = (suffix: string) =>
        Object.fromEntries(
          roles.map((role) => [role, (role === MAIN ? name : withSuffix(name, role)) + suffix]),
        ) as Record<Role, string>
      const at = {
        params: params as Values<P>,
        secret: secrets as Record<Secret, string>,
        unit: named(''),
        host: named(`.${searchDomain(stackName)}`),
      }
      return {
        units: roles.map((role) => {
          const { databasePorts = [], ...spec } = units[role](at)
          const door = frontDoor?.unit === role ? { expose: frontDoor.port } : {}
          const whole = { ...spec, ...door, name: at.unit[role], ...asked }
          // Only the parameters can make it invalid.
          return { spec: parse(unitSpecSchema, whole, 'params'), databasePorts }
        }),
        frontDoor: frontDoor && { unit: at.unit[frontDoor.unit], port: frontDoor.port },
        outputs: Object.fromEntries(
          Object.entries<{ value: (of: typeof at) => string }>(outputs).map(([key, { value }]) => [
            key,
            value(at),
          ]),
        ),
      }
    },
  }
  check(recipe)
  return recipe
}

const MAIN = 'main'

/** Null means the default, like an absent parameter. */
function parseParams(params: Params, given: Record<string, unknown>): Record<string, unknown> {
  const known = Object.keys(params).join(', ')
  const issues = Object.keys(given)
    .filter((name) => !Object.hasOwn(params, name))
    .map((name) => ({
      path: `params.${name}`,
      message: `unknown parameter; those of this recipe are ${known}`,
    }))
  if (issues.length > 0) throw validation(issues)
  return Object.fromEntries(
    Object.entries(params).map(([name, param]) => {
      const value = given[name] ?? undefined
      if (value !== undefined) return [name, parse(param.schema, value, `params.${name}`)]
      if ('fallback' in param) return [name, param.fallback]
      throw validation([{ path: `params.${name}`, message: `is required: ${param.shown.format}` }])
    }),
  )
}

/** Returns example values, with as few parameters as possible. */
export function exampleOf({ params }: Pick<Recipe, 'params'>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(params).flatMap(([name, param]) => ('example' in param ? [[name, param.example]] : [])),
  )
}

/** Checks that the recipe's default units would be accepted from a caller. Throws when the service starts. */
function check(recipe: Recipe): void {
  const name = nameSchema.parse(recipe.name)
  const secrets = Object.fromEntries(recipe.secrets.map((secret) => [secret, 'x'.repeat(32)]))
  recipe.make({ name, stackName: name, params: recipe.parse(exampleOf(recipe)), secrets })
}
