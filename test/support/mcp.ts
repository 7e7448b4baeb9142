// Sessions at /mcp by the published clients: the SDK of 2025's revisions, and the client of the one without sessions.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

type Content = { type: string; text?: string; data?: string; mimeType?: string }
export type ToolAnswer = {
  text: string
  content: Content[]
  structuredContent: Record<string, unknown> | undefined
  isError: boolean
}

export type CallSettings = {
  onProgress?: (message: string) => void
  signal?: AbortSignal
  meta?: Record<string, unknown>
}

export type McpSession = {
  instructions: string | undefined
  tools(): Promise<{ name: string; description?: string | undefined; inputSchema: unknown }[]>
  call(name: string, args?: Record<string, unknown>, settings?: CallSettings): Promise<ToolAnswer>
  close(): Promise<void>
}

type Where = { baseUrl: string; key: string; path?: string }

const info = { name: 'codex-mcp-client', version: '0.169.0' }

const withKey = (key: string) => ({ requestInit: { headers: { authorization: `Bearer ${key}` } } })

export async function oldEra({ baseUrl, key, path = '/mcp' }: Where): Promise<McpSession> {
  const client = new OldClient(info)
  // Its types say that a session id may be undefined, and those of its own transport say otherwise.
  await client.connect(
    new OldTransport(new URL(path, baseUrl), withKey(key)) as Parameters<OldClient['connect']>[0],
  )
  return {
    instructions: client.getInstructions(),
    tools: async () => (await client.listTools()).tools,
    call: async (name, args = {}, { onProgress, signal, meta } = {}) => {
      const params = { name, arguments: args, ...(meta ? { _meta: meta } : {}) }
      const answered = await client.callTool(params, undefined, {
        ...(signal ? { signal } : {}),
        ...(onProgress ? { onprogress: ({ message }) => onProgress(message ?? '') } : {}),
      })
      return toAnswer(answered)
    },
    close: async () => await client.close(),
  }
}

export async function newEra({ baseUrl, key, path = '/mcp' }: Where): Promise<McpSession> {
  const client = new Client(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await client.connect(new StreamableHTTPClientTransport(new URL(path, baseUrl), withKey(key)))
  return {
    instructions: client.getInstructions(),
    tools: async () => (await client.listTools()).tools,
    call: async (name, args = {}, { onProgress, signal, meta } = {}) => {
      const params = { name, arguments: args, ...(meta ? { _meta: meta } : {}) }
      const answered = await client.callTool(params, {
        // A first unit waits for its image to be built.
        timeout: 300_000,
        ...(signal ? { signal } : {}),
        ...(onProgress
          ? { onprogress: ({ message }: { message?: string | undefined }) => onProgress(message ?? '') }
          : {}),
      })
      return toAnswer(answered)
    },
    close: async () => await client.close(),
  }
}

function toAnswer(answered: object): ToolAnswer {
  const { content, structuredContent, isError } = answered as {
    content: Content[]
    structuredContent?: Record<string, unknown>
    isError?: boolean
  }
  const text = content.flatMap((part) => (part.text === undefined ? [] : [part.text])).join('\n')
  return { text, content, structuredContent, isError: isError ?? false }
}
