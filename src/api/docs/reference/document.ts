// The parts of the OpenAPI document that its pages show.

export type Schema = {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  format?: string
  description?: string
  default?: unknown
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  pattern?: string
  items?: Schema
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: Schema | boolean
}

export type Content = Record<string, { schema?: Schema; example?: unknown }>

export type Answer = { $ref?: string; description?: string; content?: Content }

export type Parameter = {
  name: string
  in: string
  required?: boolean
  description?: string
  schema?: Schema
}

export type Operation = {
  operationId: string
  tags?: string[]
  summary: string
  description?: string
  parameters?: (Parameter | { $ref: string })[]
  requestBody?: { required?: boolean; content: Content }
  responses: Record<string, Answer>
  security?: Record<string, unknown>[]
}

export type Document = {
  info: { description: string }
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, Schema>
    responses: Record<string, Answer>
    parameters?: Record<string, Parameter>
  }
}

/** Text for a cell of a table: on one line, without the mark that ends a cell. */
export function cell(text: string): string {
  return text.replaceAll('\n', ' ').replaceAll('|', '\\|')
}

export function nameOfRef($ref: string): string {
  return $ref.slice($ref.lastIndexOf('/') + 1)
}
