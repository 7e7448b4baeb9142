// The committed OpenAPI document as tests read it: its operations, calls it allows, and whether an answer is what it says.

import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { methodsOfPath } from '../../src/api/http/paths.ts'
import { arbitraryOf, type Components, conforms, type JsonSchema } from './json-schema.ts'

export type Parameter = {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  schema: JsonSchema
}
type Content = Record<string, { schema: JsonSchema; example?: unknown }>
export type Operation = {
  operationId: string
  security: object[]
  parameters?: Parameter[]
  requestBody?: { content: Content }
  responses: Record<string, Answered>
}
type Answered = { headers?: Record<string, unknown>; content: Content }

/** `name` is how tables and failures call it: `GET /v1/units/{id}`. */
export type Named = { name: string; method: string; path: string; operation: Operation }

const document = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')) as {
  paths: Record<
    string,
    Record<string, Operation & { responses: Record<string, Answered | { $ref: string }> }>
  >
  components: { schemas: Components; responses: Record<string, Answered> }
}
export const components = document.components.schemas

/** Operations refer to the errors they share. */
function withSharedResponses(operation: (typeof document.paths)[string][string]): Operation {
  const responses = Object.entries(operation.responses).map(([status, response]) => {
    const name = '$ref' in response ? response.$ref.replace('#/components/responses/', '') : null
    const shared = name === null ? response : document.components.responses[name]
    if (!shared || '$ref' in shared) throw new Error(`the document has no response ${name}`)
    return [status, shared] as const
  })
  return { ...operation, responses: Object.fromEntries(responses) }
}

export const operations: readonly Named[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    name: `${method.toUpperCase()} ${path}`,
    method: method.toUpperCase(),
    path,
    operation: withSharedResponses(operation),
  })),
)

/** Whether it takes a credential. */
export const isClosed = ({ operation }: Named) => operation.security.length > 0

/** What stands in the braces of a path, in order. */
export function paramsOf(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
}

export function fill(path: string, params: Record<string, string>): string {
  return path.replace(/\{(\w+)\}/g, (_brace, name: string) => encodeURIComponent(params[name] ?? ''))
}

export function jsonBodyOf({ operation }: Named): JsonSchema | undefined {
  return operation.requestBody?.content['application/json']?.schema
}

/** The body that the document gives as an example; bytes where it takes bytes, undefined where it takes nothing. */
export function exampleBody(named: Named): unknown {
  if (jsonBodyOf(named)) return named.operation.requestBody?.content['application/json']?.example
  if (named.operation.requestBody === undefined) return undefined
  return takesArchive(named) ? new Uint8Array(EMPTY_ARCHIVE) : new Uint8Array(Buffer.from('some bytes'))
}

/** In the format of tar: nothing but its end. */
const EMPTY_ARCHIVE = Buffer.alloc(1024)

export function takesArchive({ operation }: Named): boolean {
  return operation.requestBody?.content['application/x-tar'] !== undefined
}

/** A path that a call goes well with, where the query has one: of a file, or of a directory. */
export function pathFor(named: Named): string {
  return /\/(?:directory|watch)$/.test(named.path) || takesArchive(named) ? '/' : '/a'
}

/** A few bodies the document allows, always the same ones; bytes where it takes bytes, nothing where it takes nothing. */
export function sampleBodies(named: Named, count: number): unknown[] {
  const schema = jsonBodyOf(named)
  if (schema) return fc.sample(arbitraryOf(schema, components), { numRuns: count, seed: 1 })
  return [named.operation.requestBody === undefined ? undefined : 'some bytes']
}

/** The values a query must have, as the document says. */
export function requiredQuery(named: Named): string {
  const { parameters = [] } = named.operation
  const required = parameters.filter((each) => each.in === 'query' && each.required)
  const fields = required.map(({ name }): [string, string] => [name, pathFor(named)])
  return fields.length === 0 ? '' : `?${new URLSearchParams(fields).toString()}`
}

/** What of a JSON answer is not as the document says: a field it does not have, say. Null for what it does not know. */
export function faultOf(method: string, url: string, status: number, body: unknown): string | null {
  const path = url.split('?')[0] ?? ''
  const named = operations.find((each) => each.method === method && methodsOfPath([each], path).length > 0)
  const schema = named?.operation.responses[String(status)]?.content['application/json']?.schema
  if (!named || !schema) return null
  const wrong = conforms(schema, components)(body)
  return wrong === null ? null : `${named.name} ${status} is not what openapi.json says: ${wrong}`
}
