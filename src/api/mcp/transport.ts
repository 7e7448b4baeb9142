// Passes messages of either protocol revision to a server of the MCP SDK, and its answers back. protocol.ts defines
// what that server offers.

import type * as sdk from '@modelcontextprotocol/server'
import type { SendProgress } from './progress.ts'
import { SILENCE_MS } from './streamed-if-slow.ts'
import type { ToolResult } from './tool.ts'

/** What the handler of a message gets of the HTTP request it came in. */
export type Exchange = {
  callTool: (call: {
    name: string
    args: unknown
    meta: Record<string, unknown>
    signal: AbortSignal
    /** Null if the client asked for no progress. */
    sendProgress: SendProgress | null
  }) => Promise<ToolResult | null>
}

export type Protocol = {
  /** Answers a message that has already been parsed: as events as soon as there is more to tell than the result. */
  answer(request: Request, message: unknown, exchange: Exchange): Promise<Response>
}

export type Sdk = typeof sdk

/** `serverFor` makes a server for one message; servers are not shared and not kept. */
export function createTransport(
  { createMcpHandler }: Pick<Sdk, 'createMcpHandler'>,
  serverFor: (exchange: Exchange) => sdk.Server,
): Protocol {
  const exchanges = new WeakMap<Request, Exchange>()
  const exchangeOf = (request: Request | undefined) => {
    const exchange = request && exchanges.get(request)
    if (!exchange) throw new TypeError('a message came without its exchange')
    return exchange
  }
  const handler = createMcpHandler(({ requestInfo }) => serverFor(exchangeOf(requestInfo)), {
    legacy: 'stateless',
    responseMode: 'auto',
    keepAliveMs: SILENCE_MS,
  })
  return {
    answer: async (request, message, exchange) => {
      exchanges.set(request, exchange)
      return await handler.fetch(request, { parsedBody: message })
    },
  }
}
