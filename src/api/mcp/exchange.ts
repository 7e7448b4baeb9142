// One HTTP request to the MCP endpoint.

import type { IncomingMessage, ServerResponse } from 'node:http'

export type McpExchange = {
  id: string
  request: IncomingMessage
  response: ServerResponse
  peer: string
  /** Aborts when the server stops. */
  stopping: AbortSignal
}
