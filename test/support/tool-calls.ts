// One tool call at a time as bytes, so that a test says itself who calls and with what: published clients would not ask again after
// a refusal.

import type { CallOptions, Service } from './service.ts'

export type ToolCall = Pick<CallOptions, 'key' | 'cookie' | 'headers' | 'signal'> & {
  tool: string
  args?: Record<string, unknown>
}

export type ToolCalled = {
  status: number
  headers: Headers
  /** Everything that was answered. */
  text: string
  isError: boolean
  requestId: string
}

/** Of a revision without sessions, as its answer is whole by the first message. */
export async function callTool(
  service: Service,
  { tool, args = {}, headers = {}, ...who }: ToolCall,
): Promise<ToolCalled> {
  const response = await service.fetch('POST', '/mcp', {
    ...who,
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'mcp-protocol-version': '2025-06-18',
      ...headers,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: tool, arguments: args },
    }),
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    text,
    isError: /"isError":true/.test(text),
    requestId: response.headers.get('x-request-id') ?? '',
  }
}
