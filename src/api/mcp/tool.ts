// What a tool is: an operation of the API in words that a model understands, and its answer in words that help it on. A tool
// decides nothing: the operation checks, records and does (operation.ts).

import type { z } from 'zod'
import type { App } from '../../app.ts'
import { parse } from '../../contract/parse.ts'
import type { Caller } from '../../domain/credentials/caller.ts'
import type { EventStream } from '../http/sse.ts'
import type { Route } from '../route.ts'
import { routes } from '../routes.ts'

type Content = { type: 'text'; text: string } | { type: 'image'; data: string; mimeType: string }

export type ToolResult = {
  content: Content[]
  structuredContent?: Record<string, unknown>
  isError?: true
}

/** What an operation is asked, as a call over HTTP would ask it. */
export type Asked = {
  params?: Record<string, string>
  query?: Record<string, string>
  body?: unknown
}

export type Hints = {
  readOnlyHint: boolean
  destructiveHint?: boolean
  idempotentHint?: boolean
  openWorldHint: boolean
}

export const hints = {
  reads: { readOnlyHint: true, openWorldHint: false },
  adds: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  sets: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  destroys: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
} as const satisfies Record<string, Hints>

/** Takes what tells how it goes, empty for nothing to tell: asked now and then while it lasts. */
type Watch = (soFar: () => string) => void

type Definition<A, R> = {
  name: string
  title: string
  description: string
  input: z.ZodType<A>
  /** What a record that it answers holds at least; left out for what is read as text. */
  output?: z.ZodType
  hints: Hints
  /** `METHOD /path` of the operation, by what was sent, which nobody has checked yet. */
  operation: string | ((args: Record<string, unknown>) => string)
  /** The argument that names what the operation's path names. */
  target?: string | ((args: Record<string, unknown>) => unknown)
  /** Throws `validation` in the words of the arguments, and `not_found`. */
  ask: (app: App, caller: Caller, args: A) => Asked | Promise<Asked>
  /** The operation streams, and this gathers what it streams. */
  gather?: (stream: EventStream, args: A, watch: Watch) => Promise<R>
  /** How far it has come, for whoever waits; null: nothing to say. */
  progress?: (app: App, caller: Caller, args: A) => Promise<string | null>
  result: (answer: R, args: A, context: { app: App; elapsedMs: number }) => ToolResult
}

export type Tool = Pick<Definition<unknown, unknown>, 'name' | 'title' | 'description' | 'hints'> & {
  input: z.ZodType
  output: z.ZodType | null
  routeFor: (args: Record<string, unknown>) => Route
  /** Under the name that the route's path has for it. */
  targetOf: (args: Record<string, unknown>) => Record<string, unknown>
  streams: boolean
  /** Throws `validation` naming the arguments. */
  prepare: (args: unknown) => PreparedTool
}

/** A tool whose arguments have been accepted. */
export type PreparedTool = {
  ask: (app: App, caller: Caller) => Asked | Promise<Asked>
  gather: ((stream: EventStream, watch: Watch) => Promise<unknown>) | null
  progress: ((app: App, caller: Caller) => Promise<string | null>) | null
  result: (answer: unknown, context: { app: App; elapsedMs: number }) => ToolResult
}

const byName = new Map(routes.map((route) => [`${route.method} ${route.path}`, route]))

/** Ties a tool's schema to its functions where it is written, and forgets their types for the list. */
export function defineTool<A, R>(definition: Definition<A, R>): Tool {
  const { input, output = null, operation, target, ask, gather, progress, result, ...told } = definition
  const routeFor = (args: Record<string, unknown>) =>
    routeOf(typeof operation === 'string' ? operation : operation(args))
  return {
    ...told,
    input,
    output,
    routeFor,
    targetOf: (args) => {
      const parameter = /\{(\w+)\}/.exec(routeFor(args).path)?.[1]
      if (parameter === undefined || target === undefined) return {}
      return { [parameter]: typeof target === 'string' ? args[target] : target(args) }
    },
    streams: gather !== undefined,
    prepare: (sent) => {
      const args = parse(input, sent)
      return {
        ask: (app, caller) => ask(app, caller, args),
        gather: gather ? (stream, watch) => gather(stream, args, watch) : null,
        progress: progress ? (app, caller) => progress(app, caller, args) : null,
        result: (answer, context) => result(answer as R, args, context),
      }
    },
  }
}

function routeOf(operation: string): Route {
  const route = byName.get(operation)
  if (!route) throw new TypeError(`there is no operation ${operation}`)
  return route
}

export function textResult(text: string): ToolResult {
  return { content: [{ type: 'text', text }] }
}

/** Some clients show a model the record alone, others the text alone: both say the same. */
export function recordResult(record: Record<string, unknown>): ToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(record) }], structuredContent: record }
}
