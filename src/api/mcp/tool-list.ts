// The list of tools for clients. It is built once and the same for every caller, so clients can cache it.

import { z } from 'zod'
import { tools } from './tools/tools.ts'

type JsonSchema = Record<string, unknown>
type ObjectSchema = JsonSchema & { type: 'object' }

export const toolList = tools.map(({ name, title, description, hints, input, output }) => ({
  name,
  title,
  description,
  inputSchema: schemaOf(input, 'input'),
  ...(output === null ? {} : { outputSchema: schemaOf(output, 'output') }),
  annotations: { ...hints },
}))

/** Leaves out what tells a model nothing, because a model reads the whole list in every session. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): ObjectSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io,
    override: ({ jsonSchema }) => {
      delete jsonSchema.propertyNames
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      if (jsonSchema.additionalProperties !== false && isEmpty(jsonSchema.additionalProperties)) {
        delete jsonSchema.additionalProperties
      }
    },
  })
  return { ...rest, type: 'object' }
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}
