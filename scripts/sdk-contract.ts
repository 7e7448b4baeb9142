// packages/sdk/src/contract.ts from openapi.json and the recipes: types that cost a program nothing when it runs, and the
// closed set of error codes. It knows the few constructs of JSON Schema that the document uses, and throws at any other.

import type { Recipe } from '../src/contract/recipe.ts'

export type Schema = {
  $ref?: string
  type?: string | string[]
  enum?: (string | number | boolean | null)[]
  anyOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  description?: string
}

export type OpenApiDocument = { components: { schemas: Record<string, Schema> } }

/** What a type says, and what only narrows its values. */
export const knownKeywords = new Set(
  (
    '$ref type enum anyOf items properties required additionalProperties description ' +
    'default format pattern minimum maximum minLength maxLength minItems maxItems'
  ).split(' '),
)

/** The text of the file. */
export function sdkContract(document: OpenApiDocument, recipes: readonly Recipe[]): string {
  const { schemas } = document.components
  const codes = schemas.Error?.properties?.error?.properties?.code?.enum ?? fail('no error codes')
  const types = Object.entries(schemas)
    .filter(([name]) => name !== 'Error')
    .map(([name, schema]) => `${comment(schema, '')}export type ${name} = ${typeOf(schema, '')}\n`)
  return [
    '// Written by `npm run gen` from openapi.json and the recipes: do not edit.\n',
    '/** Every code that an error of the service can have. */',
    `export const errorCodes = [\n${codes.map((code) => `  ${literal(code)},\n`).join('')}] as const`,
    'export type ErrorCode = (typeof errorCodes)[number]\n',
    ...types,
    '/** Parameters and outputs of each recipe, by its name. */',
    `export type Recipes = {\n${recipes.map(recipeType).join('')}}\n`,
  ].join('\n')
}

function typeOf(schema: Schema, indent: string): string {
  const unknown = Object.keys(schema).find((key) => !knownKeywords.has(key))
  if (unknown !== undefined) fail(`"${unknown}" in a schema: say in scripts/sdk-contract.ts what it means`)
  if (schema.$ref !== undefined) return schema.$ref.replace('#/components/schemas/', '')
  if (schema.enum) return schema.enum.map(literal).join(' | ')
  if (schema.anyOf) return schema.anyOf.map((each) => typeOf(each, indent)).join(' | ')
  const types = [schema.type ?? []].flat()
  if (types.length === 0) return 'unknown'
  return types.map((type) => plainType(type, schema, indent)).join(' | ')
}

function plainType(type: string, schema: Schema, indent: string): string {
  switch (type) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'null':
      return type
    case 'integer':
      return 'number'
    case 'array': {
      const items = typeOf(schema.items ?? {}, indent)
      return / [|&] /.test(items) ? `(${items})[]` : `${items}[]`
    }
    case 'object':
      return objectType(schema, indent)
    default:
      return fail(`the type "${type}" in a schema: say in scripts/sdk-contract.ts what it means`)
  }
}

function objectType({ properties, required = [], additionalProperties }: Schema, indent: string): string {
  if (!properties) {
    const values = typeof additionalProperties === 'object' ? typeOf(additionalProperties, indent) : 'unknown'
    return `{ [name: string]: ${values} }`
  }
  const inner = `${indent}  `
  const fields = Object.entries(properties).map(([name, schema]) => {
    const type = typeOf(schema, inner)
    // Without exactOptionalPropertyTypes and with it, a caller may say undefined.
    const field = required.includes(name) ? `${name}: ${type}` : `${name}?: ${type} | undefined`
    return `${comment(schema, inner)}${inner}${field}\n`
  })
  return `{\n${fields.join('')}${indent}}`
}

function recipeType({ name, params, outputs }: Recipe): string {
  const given = params.map(
    (param) =>
      `      ${param.name}${param.required ? '' : '?'}: ${paramType(param)}${param.required ? '' : ' | null | undefined'}\n`,
  )
  const told = outputs.map((output) => `      ${output.name}: string\n`)
  const block = (lines: string[]) =>
    lines.length === 0 ? 'Record<never, string>' : `{\n${lines.join('')}    }`
  return `  ${/^\w+$/.test(name) ? name : literal(name)}: {\n    params: ${block(given)}\n    outputs: ${block(told)}\n  }\n`
}

function paramType({ type, options }: Recipe['params'][number]): string {
  if (type === 'enum') return (options ?? []).map(literal).join(' | ')
  if (type === 'integer') return 'number'
  if (type === 'secret') return '{ teamSecret: string } | { value: string }'
  return type === 'record' ? '{ [name: string]: unknown }' : 'string'
}

function comment({ description }: Schema, indent: string): string {
  return description === undefined ? '' : `${indent}/** ${description.replaceAll('*/', '* /')} */\n`
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value.replaceAll(/['\\]/g, '\\$&')}'` : String(value)
}

function fail(what: string): never {
  throw new Error(`the SDK's contract cannot be made: ${what}`)
}
