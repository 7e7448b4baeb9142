// What is used of the vendor's library, `@anthropic-ai/sdk`, in our own words: it is not a part of the CLI, and is found where
// the CLI is installed. The server has it.

import { QueueRefused } from './queue.ts'

type Options = { signal?: AbortSignal; maxRetries?: number }
type About = { environment_id: string }

type Call = { toolUse?: { id: string } | undefined; signal?: AbortSignal | null | undefined }

export type RunnableTool = {
  type: 'custom'
  name: string
  description: string
  input_schema: { type: 'object'; properties: Record<string, object>; required: string[] }
  parse: (content: unknown) => unknown
  run: (input: Record<string, unknown>, call?: Call) => Promise<string>
}

type ListedWork = {
  id: string
  state: string
  latest_heartbeat_at?: string | null
  data: { type: string; id: string }
}

type WorkerOptions = {
  workdir: string
  environmentKey: string
  memorySyncIntervalMs: null
  maxIdleMs?: number
  tools: () => RunnableTool[]
}

type Item = {
  workId: string
  environmentId: string
  sessionId: string
  workSecret?: string
  signal: AbortSignal
}

export type VendorSession = {
  status: string
  archived_at: string | null
  metadata: Record<string, string>
  resources: { type: string; memory_store_id?: string; mount_path?: string | null }[]
  agent?: { skills?: { skill_id: string }[] }
}

export type VendorClient = {
  beta: {
    environments: {
      work: {
        poll: (environment: string, asked: object, options: Options) => Promise<unknown>
        list: (environment: string, asked: object, options: Options) => AsyncIterable<ListedWork>
        ack: (id: string, about: About, options: Options) => Promise<unknown>
        stop: (id: string, about: About & { force: boolean }, options: Options) => Promise<unknown>
        worker: (options: WorkerOptions) => { handleItem: (item: Item) => Promise<void> }
      }
    }
    sessions: { retrieve: (id: string, asked: object, options: Options) => Promise<VendorSession> }
  }
}

type ClientOptions = {
  authToken: string
  apiKey: null
  baseURL?: string
  fetch: typeof fetch
  logLevel: 'off'
  maxRetries: number
  timeout: number
}

export type Library = {
  Client: new (options: ClientOptions) => VendorClient
  /** Of an error of the library: the status of the answer; null if there was none. */
  statusOf: (error: unknown) => number | null
  /** What a tool throws for the agent to read. */
  toolError: (message: string) => Error
}

const name: string = '@anthropic-ai/sdk'

export async function loadLibrary(): Promise<Library> {
  try {
    const { default: Client } = (await import(name)) as {
      default: Library['Client'] & { APIError: new () => Error }
    }
    const { ToolError } = (await import(`${name}/lib/tools/ToolError`)) as {
      ToolError: new (message: string) => Error
    }
    return {
      Client,
      statusOf: (error) =>
        error instanceof Client.APIError ? ((error as { status?: number }).status ?? null) : null,
      toolError: (message) => new ToolError(message),
    }
  } catch {
    throw new QueueRefused(
      "The vendor's library is not here: install it with npm install --global @anthropic-ai/sdk@1.14",
    )
  }
}
