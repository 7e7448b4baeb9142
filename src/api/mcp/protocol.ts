// The MCP SDK implements the protocol, with and without sessions. It is loaded at the first call, because it takes
// some 30 MB that an installation without agents does not need.

import { instructions } from './instructions.ts'
import { toolList } from './tool-list.ts'
import { createTransport, type Exchange, type Protocol } from './transport.ts'

/** Long enough for a session, short enough that clients notice an upgrade. */
const LIST_TTL_MS = 300_000

const VERSION = '1.0.0'

export async function openProtocol(): Promise<Protocol> {
  const sdk = await import('@modelcontextprotocol/server')
  const { ProtocolError, ProtocolErrorCode, Server } = sdk
  const cached = { ttlMs: LIST_TTL_MS, cacheScope: 'public' as const }
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
  return createTransport(sdk, serverFor)
}
