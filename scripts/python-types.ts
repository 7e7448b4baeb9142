// packages/python/src/berth/types.py from openapi.json: TypedDicts, which a program reads only when it names one. It knows
// the few constructs of JSON Schema that the document uses, and throws at any other, as scripts/sdk-contract.ts does.

import { knownKeywords, type OpenApiDocument, type Schema } from './sdk-contract.ts'

/** Closed sets that methods of the library take, by where the document has them. */
const sets = {
  Size: ['UnitSpec', 'size'],
  Mode: ['Expose', 'mode'],
  Protocol: ['Expose', 'protocol'],
  Signal: ['ProcessSignal', 'signal'],
  Topic: ['SupportMessage', 'topic'],
} as const satisfies Record<string, readonly [string, string]>

/** Keys that no class can have as a field. */
const keywords = new Set(['from', 'import', 'class', 'is', 'in', 'not', 'with', 'as', 'for', 'if'])

const header = `"""What the service takes and answers, by the names that its API has. Written by \`npm run gen\` from openapi.json: do not
edit."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, TypedDict
`

/** What was written so far, and names that no class of a field may have. */
type Classes = { texts: string[]; taken: ReadonlySet<string> }

/** The text of the file. */
export function pythonTypes(document: OpenApiDocument, recipes: readonly { name: string }[]): string {
  const { schemas } = document.components
  const codes = schemas.Error?.properties?.error?.properties?.code
  const aliases = Object.entries(sets).map(
    ([name, [schema, field]]) => `${name} = ${setOf(schemas[schema]?.properties?.[field])}`,
  )
  const classes: Classes = { texts: [], taken: new Set(Object.keys(schemas)) }
  for (const [name, schema] of Object.entries(schemas)) {
    if (name === 'Error') continue
    if (!schema.properties) fail(`the schema ${name} is no object with fields`)
    addClass(name, schema, classes)
  }
  return [
    header,
    `ErrorCode = ${setOf(codes)}`,
    `RecipeName = ${literals(recipes.map(({ name }) => name))}`,
    ...aliases,
    ...classes.texts.map((text) => `\n\n${text}`),
    '',
  ].join('\n')
}

/** Adds the class of an object, behind those of the objects in it. */
function addClass(name: string, schema: Schema, classes: Classes): void {
  const { properties = {}, required = [] } = schema
  const fields = Object.entries(properties).map(([key, each]) => ({
    key,
    type: typeOf(each, nameOf(name, key, classes), classes),
    isRequired: required.includes(key),
    comment: each.description === undefined ? '' : `    #: ${each.description.replaceAll('\n', ' ')}\n`,
  }))
  if (fields.some(({ key }) => keywords.has(key))) {
    if (fields.some(({ isRequired }) => !isRequired)) fail(`a keyword beside optional fields in ${name}`)
    const items = fields.map(({ key, type }) => `"${key}": ${type}`)
    classes.texts.push(`${name} = TypedDict("${name}", {${items.join(', ')}})`)
    return
  }
  const lines = (all: typeof fields) => all.map(({ key, type, comment }) => `${comment}    ${key}: ${type}\n`)
  const [must, may] = [
    fields.filter(({ isRequired }) => isRequired),
    fields.filter((each) => !each.isRequired),
  ]
  const says = schema.description === undefined ? '' : `    """${schema.description}"""\n\n`
  const body = (all: typeof fields) => (all.length === 0 ? '    pass\n' : lines(all).join('')).trimEnd()
  if (may.length === 0) classes.texts.push(`class ${name}(TypedDict):\n${says}${body(must)}`)
  else if (must.length === 0)
    classes.texts.push(`class ${name}(TypedDict, total=False):\n${says}${body(may)}`)
  else {
    classes.texts.push(`class _${name}Required(TypedDict):\n${body(must)}`)
    classes.texts.push(`class ${name}(_${name}Required, total=False):\n${says}${body(may)}`)
  }
}

function nameOf(parent: string, key: string, { taken }: Classes): string {
  const name = parent + key.charAt(0).toUpperCase() + key.slice(1)
  return taken.has(name) ? `${name}Field` : name
}

/** `name` is what an object without a name of its own is called. */
function typeOf(schema: Schema, name: string, classes: Classes): string {
  const unknown = Object.keys(schema).find((key) => !knownKeywords.has(key))
  if (unknown !== undefined) fail(`"${unknown}" in a schema: say in scripts/python-types.ts what it means`)
  if (schema.$ref !== undefined) return schema.$ref.replace('#/components/schemas/', '')
  if (schema.enum) return literals(schema.enum)
  if (schema.anyOf)
    return schema.anyOf.map((each, at) => typeOf(each, `${name}${at || ''}`, classes)).join(' | ')
  const types = [schema.type ?? []].flat()
  return types.length === 0 ? 'Any' : types.map((type) => plainType(type, schema, name, classes)).join(' | ')
}

function plainType(type: string, schema: Schema, name: string, classes: Classes): string {
  switch (type) {
    case 'string':
      return 'str'
    case 'number':
      return 'float'
    case 'integer':
      return 'int'
    case 'boolean':
      return 'bool'
    case 'null':
      return 'None'
    case 'array':
      return `List[${typeOf(schema.items ?? {}, name.replace(/s$/, ''), classes)}]`
    case 'object': {
      if (schema.properties) {
        addClass(name, schema, classes)
        return name
      }
      const { additionalProperties: values } = schema
      return `Dict[str, ${typeof values === 'object' ? typeOf(values, name, classes) : 'Any'}]`
    }
    default:
      return fail(`the type "${type}" in a schema: say in scripts/python-types.ts what it means`)
  }
}

const setOf = (schema: Schema | undefined) => literals(schema?.enum ?? fail('a closed set is gone'))

function literals(values: readonly unknown[]): string {
  const said = values.map((value) => {
    if (value === null) return 'None'
    if (typeof value === 'boolean') return value ? 'True' : 'False'
    return JSON.stringify(value)
  })
  return `Literal[${said.join(', ')}]`
}

function fail(what: string): never {
  throw new Error(`the types of the Python library cannot be made: ${what}`)
}
