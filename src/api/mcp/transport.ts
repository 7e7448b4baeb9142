// How messages of either revision get to a server of the MCP SDK and its answers back. What the server then offers is protocol.ts.

import type * as sdk from '@modelcontextprotocol/server'
import type { SendProgress } from './progress.ts'
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
  /** Answers a message that has already been parsed. `streams`: as events, with comments during silence. */
  answer(request: Request, message: unknown, exchange: Exchange, streams: boolean): Promise<Response>
}

export type Sdk = typeof sdk

const KEEP_ALIVE_MS = 15_000

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
  const handlerWith = (responseMode: 'auto' | 'sse') =>
    createMcpHandler(({ requestInfo }) => serverFor(exchangeOf(requestInfo)), {
      legacy: 'stateless',
      responseMode,
      keepAliveMs: KEEP_ALIVE_MS,
    })
  const handlers = { once: handlerWith('auto'), streaming: handlerWith('sse') }
  return {
    answer: async (request, message, exchange, streams) => {
      exchanges.set(request, exchange)
      return await (streams ? handlers.streaming : handlers.once).fetch(request, { parsedBody: message })
    },
  }
}
