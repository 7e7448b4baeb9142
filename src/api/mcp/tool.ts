// A tool describes an operation of the API in words for a model, and turns the answer into text or a record. A tool
// decides nothing: the operation (operation.ts) checks, audits and acts.

import type { z } from 'zod'
import type { App } from '../../app.ts'
import { parse } from '../../contract/parse.ts'
import type { Caller } from '../../domain/credentials/caller.ts'
import type { EventStream } from '../http/sse.ts'
import type { Route } from '../route.ts'
import { routes } from '../routes.ts'
import type { Watch } from './output.ts'

type Content = { type: 'text'; text: string } | { type: 'image'; data: string; mimeType: string }

export type ToolResult = {
  content: Content[]
  structuredContent?: Record<string, unknown>
  isError?: true
}

/** The input of an operation, as a call over HTTP would send it. */
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

type Definition<A, R> = {
  name: string
  title: string
  description: string
  input: z.ZodType<A>
  /** The schema of the record that the tool answers with; absent if it answers text. */
  output?: z.ZodType
  hints: Hints
  /** `METHOD /path` of the operation; may depend on the arguments, which are not yet validated. */
  operation: string | ((args: Record<string, unknown>) => string)
  /** The arguments that hold the ids in the operation's path, in the path's order. */
  target?: string | readonly string[] | ((args: Record<string, unknown>) => unknown)
  /** Throws `validation`, naming the arguments, or `not_found`. */
  ask: (app: App, caller: Caller, args: A) => Asked | Promise<Asked>
  /** Present if the operation streams: collects its events into one result. */
  gather?: (stream: EventStream, args: A, watch: Watch) => Promise<R>
  /** Returns the progress in words, or null for nothing to report. */
  progress?: (app: App, caller: Caller, args: A) => Promise<string | null>
  result: (answer: R, args: A, context: { app: App; elapsedMs: number }) => ToolResult
}

export type Tool = Pick<Definition<unknown, unknown>, 'name' | 'title' | 'description' | 'hints'> & {
  input: z.ZodType
  output: z.ZodType | null
  routeFor: (args: Record<string, unknown>) => Route
  /** By the name of the parameter in the route's path. */
  targetOf: (args: Record<string, unknown>) => Record<string, unknown>
  streams: boolean
  /** Throws `validation`, naming the arguments. */
  prepare: (args: unknown) => PreparedTool
}

/** A tool call with valid arguments. */
export type PreparedTool = {
  ask: (app: App, caller: Caller) => Asked | Promise<Asked>
  gather: ((stream: EventStream, watch: Watch) => Promise<unknown>) | null
  progress: ((app: App, caller: Caller) => Promise<string | null>) | null
  result: (answer: unknown, context: { app: App; elapsedMs: number }) => ToolResult
}

const byName = new Map(routes.map((route) => [`${route.method} ${route.path}`, route]))

/** Binds a tool's schema to its functions, and erases their types so that tools fit in one list. */
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
      if (target === undefined) return {}
      const named = typeof target === 'function' ? [target(args)] : [target].flat().map((name) => args[name])
      const parameters = routeFor(args).path.matchAll(/\{(\w+)\}/g)
      return Object.fromEntries([...parameters].map(([, parameter = ''], index) => [parameter, named[index]]))
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

/** Some clients show a model only the record, others only the text: both say the same. */
export function recordResult(record: Record<string, unknown>): ToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(record) }], structuredContent: record }
}
