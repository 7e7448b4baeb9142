// The server that the conformance suite asks for, on the transport of /mcp: what it proves is that all the protocol has gets through
// our endpoint, also what the tools of units do not use.

import type { Server } from '@modelcontextprotocol/server'
import { createTransport, type Protocol, type Sdk } from '../../../src/api/mcp/transport.ts'
import { askingTools, nameAsked, states } from './asking.ts'
import { getPrompt, plainTools, prompts, readResource, resources, resourceTemplates } from './contents.ts'

const anything = { type: 'object' as const }
const toolNames = [
  ...Object.keys(plainTools),
  ...Object.keys(askingTools),
  'test_error_handling',
  'test_tool_with_progress',
  'test_tool_with_logging',
  'test_logging_tool',
]
const tools = toolNames.map((name) => ({ name, description: `The suite's ${name}.`, inputSchema: anything }))

export async function openFixture(): Promise<Protocol> {
  const sdk = await import('@modelcontextprotocol/server')
  const servers = new Set<Server>()
  const transport = createTransport(sdk, () => {
    const server = fixtureServer(sdk)
    servers.add(server)
    server.onclose = () => servers.delete(server)
    return server
  })
  return {
    answer: async (request, message, exchange) => {
      // An answer to what a server asked within its own: nothing but its number says which of them that was.
      if (sdk.isJSONRPCResultResponse(message)) {
        for (const server of servers) server.transport?.onmessage?.(message)
        return new Response(null, { status: 202 })
      }
      return await transport.answer(request, message, exchange)
    },
  }
}

function fixtureServer(sdk: Sdk): Server {
  const codec = states(sdk)
  const cached = { ttlMs: 1000, cacheScope: 'public' as const }
  const server = new sdk.Server(
    { name: 'fixture', version: '1.0.0' },
    {
      capabilities: { tools: {}, prompts: {}, resources: {}, completions: {}, logging: {} },
      cacheHints: {
        'tools/list': cached,
        'prompts/list': cached,
        'resources/list': cached,
        'resources/templates/list': cached,
        'resources/read': cached,
        'server/discover': cached,
      },
      requestState: { verify: async (state, context) => await codec.verify(state, context) },
    },
  )
  addTools(sdk, server)
  server.setRequestHandler('resources/list', () => ({ resources }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates }))
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const contents = readResource(uri)
    if (contents === null) throw new sdk.ResourceNotFoundError(uri)
    return { contents: [contents] }
  })
  server.setRequestHandler('resources/subscribe', () => ({}))
  server.setRequestHandler('resources/unsubscribe', () => ({}))
  server.setRequestHandler('prompts/list', () => ({ prompts }))
  server.setRequestHandler('prompts/get', ({ params }, { mcpReq }) => {
    if (params.name === 'test_input_required_result_prompt') {
      const { kind } = sdk.inputResponse(mcpReq.inputResponses, 'user_context')
      if (kind === 'missing') return sdk.inputRequired({ inputRequests: { user_context: nameAsked } })
      return { messages: [{ role: 'user', content: { type: 'text', text: 'It was told.' } }] }
    }
    const prompt = getPrompt(params.name, params.arguments ?? {})
    if (prompt === null) throw new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, 'unknown prompt')
    return prompt
  })
  server.setRequestHandler('completion/complete', () => ({
    completion: { values: ['paris', 'park'], total: 2, hasMore: false },
  }))
  return server
}

function addTools(sdk: Sdk, server: Server): void {
  server.setRequestHandler('tools/list', () => ({ tools }))
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const { name, arguments: args = {} } = params
    const { mcpReq } = context
    const ask = askingTools[name]
    if (ask) return await ask(sdk, context, args)
    if (name in plainTools) return { content: plainTools[name as keyof typeof plainTools] }
    const done = { content: [{ type: 'text' as const, text: 'done' }] }
    switch (name) {
      case 'test_error_handling': {
        const text = 'This tool intentionally returns an error for testing'
        return { content: [{ type: 'text', text }], isError: true }
      }
      case 'test_tool_with_progress': {
        const progressToken = mcpReq._meta?.progressToken
        if (progressToken === undefined) return done
        for (const progress of [0, 50, 100]) {
          const told = { progressToken, progress, total: 100, message: `${progress} of 100` }
          await mcpReq.notify({ method: 'notifications/progress', params: told })
        }
        return done
      }
      case 'test_tool_with_logging':
      case 'test_logging_tool':
        for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
          await mcpReq.log('info', data)
        }
        return done
      default:
        throw new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, `There is no tool ${name}.`)
    }
  })
}
