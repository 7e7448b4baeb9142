// The fields of a schema as rows of a table.

import { cell, type Document, nameOfRef, type Schema } from './document.ts'

/** How deep a body is spelt out; what is deeper is named by its type. */
const MAX_DEPTH = 3

export type Field = { name: string; type: string; isRequired: boolean; text: string }

/** The schema itself, where it is named elsewhere in the document. */
export function resolve(document: Document, schema: Schema): Schema {
  if (schema.$ref === undefined) return schema
  return document.components.schemas[nameOfRef(schema.$ref)] ?? {}
}

export function fieldTable(document: Document, schema: Schema): string {
  const rows = fieldsOf(document, schema).map(
    ({ name, type, isRequired, text }) =>
      `| \`${name}\` | ${cell(type)} | ${isRequired ? 'yes' : ''} | ${cell(text)} |`,
  )
  if (rows.length === 0) return ''
  return ['| field | type | required | |', '|---|---|---|---|', ...rows, ''].join('\n')
}

function fieldsOf(document: Document, schema: Schema, prefix = '', depth = 1): Field[] {
  const { properties = {}, required = [] } = resolve(document, schema)
  return Object.entries(properties).flatMap(([key, named]) => {
    const field = resolve(document, named)
    const name = `${prefix}${key}`
    const row = {
      name,
      type: typeOf(document, named),
      isRequired: required.includes(key),
      text: aboutField({
        ...field,
        ...(named.description === undefined ? {} : { description: named.description }),
      }),
    }
    const [inner, mark] = innerOf(document, field)
    return inner === null || depth === MAX_DEPTH
      ? [row]
      : [row, ...fieldsOf(document, inner, `${name}${mark}.`, depth + 1)]
  })
}

/** The object that a field is, or is a list of. */
function innerOf(document: Document, field: Schema): [Schema | null, string] {
  if (field.properties !== undefined) return [field, '']
  if (field.items !== undefined && resolve(document, field.items).properties !== undefined)
    return [resolve(document, field.items), '[]']
  return [null, '']
}

export function typeOf(document: Document, named: Schema): string {
  const schema = resolve(document, named)
  if (schema.anyOf !== undefined)
    return [...new Set(schema.anyOf.map((each) => typeOf(document, each)))].join(' or ')
  if (schema.enum !== undefined)
    return schema.enum
      .map((value) => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``)
      .join(', ')
  const types = [schema.type ?? 'any'].flat()
  return types
    .map((type) => {
      if (type === 'array') return `list of ${typeOf(document, schema.items ?? {})}`
      if (type === 'object' && typeof schema.additionalProperties === 'object')
        return `object: name → ${typeOf(document, schema.additionalProperties)}`
      if (type === 'string' && schema.format !== undefined) return schema.format
      return type
    })
    .join(' or ')
}

function aboutField(schema: Schema): string {
  const { description, minimum, maximum, maxLength, minItems, maxItems, default: fallback } = schema
  return [
    description,
    fallback === undefined ? undefined : `Default: \`${JSON.stringify(fallback)}\`.`,
    range(minimum, maximum, ''),
    maxLength === undefined ? undefined : `At most ${maxLength} characters.`,
    range(minItems, maxItems, ' items'),
  ]
    .filter((part) => part !== undefined)
    .join(' ')
}

function range(least: number | undefined, most: number | undefined, of: string): string | undefined {
  const isBound = (value: number | undefined) =>
    value !== undefined && Math.abs(value) !== Number.MAX_SAFE_INTEGER
  if (isBound(least) && isBound(most)) return `${least} to ${most}${of}.`
  if (isBound(most)) return `At most ${most}${of}.`
  return isBound(least) && least !== 0 ? `At least ${least}${of}.` : undefined
}
