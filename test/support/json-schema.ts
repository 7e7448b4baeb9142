// From the committed OpenAPI document to checks and to generated input: what a stranger who reads nothing
// else would expect and send.

import fc from 'fast-check'
import { z } from 'zod'

export type JsonSchema = {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  anyOf?: JsonSchema[]
  properties?: Record<string, JsonSchema>
  required?: string[]
  additionalProperties?: boolean | JsonSchema
  items?: JsonSchema
  pattern?: string
  format?: string
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  minimum?: number
  maximum?: number
}

export type Components = Record<string, JsonSchema>

type Check = (value: unknown) => string | null

/** Made once for each schema, since making one takes longer than the call whose answer it reads. */
const checks = new WeakMap<JsonSchema, Check>()

/** Whether a value is what the schema says, and if not, why. */
export function conforms(schema: JsonSchema, components: Components): Check {
  const made = checks.get(schema) ?? makeCheck(schema, components)
  checks.set(schema, made)
  return made
}

function makeCheck(schema: JsonSchema, components: Components): Check {
  const rooted = { ...relocate(schema), $defs: relocate(components) }
  const check = z.fromJSONSchema(rooted as Parameters<typeof z.fromJSONSchema>[0])
  return (value) => {
    const result = check.safeParse(value)
    return result.success ? null : z.prettifyError(result.error)
  }
}

function relocate<T>(schema: T): T {
  return JSON.parse(JSON.stringify(schema).replaceAll('#/components/schemas/', '#/$defs/')) as T
}

function resolve(schema: JsonSchema, components: Components): JsonSchema {
  if (schema.$ref === undefined) return schema
  const name = schema.$ref.replace('#/components/schemas/', '')
  const found = components[name]
  if (!found) throw new Error(`the document has no schema ${name}`)
  return resolve(found, components)
}

/** Values the schema allows, small ones. */
export function arbitraryOf(reference: JsonSchema, components: Components): fc.Arbitrary<unknown> {
  const schema = resolve(reference, components)
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map((option) => arbitraryOf(option, components)))
  const types = Array.isArray(schema.type) ? schema.type : [schema.type ?? 'any']
  return fc.oneof(...types.map((type) => ofType(type, schema, components)))
}

function ofType(type: string, schema: JsonSchema, components: Components): fc.Arbitrary<unknown> {
  switch (type) {
    case 'string':
      return stringOf(schema)
    case 'integer':
      return fc.integer({ min: schema.minimum ?? -1000, max: schema.maximum ?? 1_000_000 })
    case 'number':
      return fc.double({ min: schema.minimum ?? -1e6, max: schema.maximum ?? 1e6, noNaN: true })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return fc.array(arbitraryOf(schema.items ?? {}, components), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(schema.maxItems ?? 4, (schema.minItems ?? 0) + 4),
      })
    case 'object':
      return objectOf(schema, components)
    default:
      return fc.jsonValue()
  }
}

function stringOf({ pattern, format, minLength = 0, maxLength = 40 }: JsonSchema): fc.Arbitrary<string> {
  const bounds = { minLength, maxLength: Math.min(maxLength, minLength + 40) }
  if (format === 'email') return fc.stringMatching(/^[A-Za-z0-9+._-]{1,20}@[a-z0-9]{1,20}\.test$/)
  if (pattern === undefined) return fc.string({ unit: 'grapheme', ...bounds })
  return fc
    .stringMatching(new RegExp(pattern))
    .filter((text) => text.length >= minLength && text.length <= maxLength)
}

function objectOf(schema: JsonSchema, components: Components): fc.Arbitrary<unknown> {
  const { properties = {}, required = [] } = schema
  const fields = Object.entries(properties).map(([name, field]) => [name, fieldOf(name, field, components)])
  return fc.record(Object.fromEntries(fields) as Record<string, fc.Arbitrary<unknown>>, {
    requiredKeys: required,
  })
}

const path = fc.stringMatching(/^(\/[a-z]{1,8}){1,3}$/)
const variable = fc.stringMatching(/^[A-Za-z_]\w{0,8}$/)
const base64 = fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes).toString('base64'))

/** Rules of the contract that no schema can say, by the names of the fields they hold for. */
const hints = new Map<string, fc.Arbitrary<unknown>>([
  ['path', path],
  ['to', path],
  ['mount', path],
  ['base64', base64],
  ['contentBase64', base64],
])

/** The value of a field: now and then one that only the schema allows. */
export function fieldOf(name: string, reference: JsonSchema, components: Components): fc.Arbitrary<unknown> {
  const { additionalProperties, ...schema } = resolve(reference, components)
  if (typeof additionalProperties === 'object') {
    const key = name === 'files' ? path : variable
    return fc.dictionary(key, arbitraryOf(additionalProperties, components), { maxKeys: 3 })
  }
  const hint = hints.get(name)
  const any = arbitraryOf(schema, components)
  return hint ? fc.oneof({ weight: 9, arbitrary: hint }, any) : any
}

/** Allowed values with one thing about them changed to what the schema forbids. */
export function invalidOf(schema: JsonSchema, components: Components): fc.Arbitrary<unknown> {
  const check = conforms(schema, components)
  return fc
    .tuple(arbitraryOf(schema, components), fc.nat(), poison)
    .map(([value, place, wrong]) => replaceOne(value, place, wrong))
    .filter((value) => check(value) !== null)
}

/** What is wrong almost anywhere: other types, bounds, hostile text. */
const poison = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    -1,
    1.5,
    1e300,
    '',
    [],
    {},
    [null],
    { a: { b: 1 } },
    'nul\0',
    'x'.repeat(9000),
  ),
  fc.string({ unit: 'grapheme' }),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
)

/** Replaces one of the values within, or adds a field to one of the objects. */
function replaceOne(root: unknown, place: number, wrong: unknown): unknown {
  const slots: ((value: unknown) => void)[] = []
  const box = { root: structuredClone(root) }
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    const container = value as Record<string, unknown>
    if (!Array.isArray(value)) slots.push((poisoned) => void (container['surprise'] = poisoned))
    for (const [key, item] of Object.entries(container)) {
      slots.push((poisoned) => void (container[key] = poisoned))
      visit(item)
    }
  }
  visit(box)
  // The first slot would add a field to the box itself.
  slots[1 + (place % (slots.length - 1))]?.(wrong)
  return box.root
}
