// The MCP SDK implements the protocol, with and without sessions. It is loaded at the first call, because it takes
// some 30 MB that an installation without agents does not need.

import { instructions } from './instructions.ts'
import { toolList } from './tool-list.ts'
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

/** Long enough for a session, short enough that clients notice an upgrade. */
const LIST_TTL_MS = 300_000
const KEEP_ALIVE_MS = 15_000

const VERSION = '1.0.0'

export async function openProtocol(): Promise<Protocol> {
  const { createMcpHandler, ProtocolError, ProtocolErrorCode, Server } = await import(
    '@modelcontextprotocol/server'
  )
  const cached = { ttlMs: LIST_TTL_MS, cacheScope: 'public' as const }
  const exchanges = new WeakMap<Request, Exchange>()
  const exchangeOf = (request: Request | undefined) => {
    const exchange = request && exchanges.get(request)
    if (!exchange) throw new TypeError('a message came without its exchange')
    return exchange
  }
  const serverFor = (exchange: Exchange) => {
    const server = new Server(
      { name: 'berth', title: 'Berth', version: VERSION },
      {
        capabilities: { tools: {} },
        instructions,
        cacheHints: { 'tools/list': cached, 'server/discover': cached },
      },
    )
    server.setRequestHandler('tools/list', ({ params }) => {
      if (params?.cursor !== undefined) {
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is one page of tools, and no cursor.')
      }
      return { tools: toolList }
    })
    server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
      const { _meta: meta = {}, signal } = mcpReq
      const { progressToken } = meta
      const result = await exchange.callTool({
        name: params.name,
        args: params.arguments ?? {},
        meta,
        signal,
        sendProgress:
          progressToken === undefined
            ? null
            : async (progress, message) =>
                await mcpReq.notify({
                  method: 'notifications/progress',
                  params: { progressToken, progress, message },
                }),
      })
      if (result !== null) return result
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `There is no tool ${JSON.stringify(params.name.slice(0, 100))}.`,
      )
    })
    return server
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
