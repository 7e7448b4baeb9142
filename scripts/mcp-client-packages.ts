// The published MCP clients that the npm registry has: some 260 MB, installed only for the runs that try them.

export const publishedClients = {
  '@ai-sdk/mcp': '2.0.99',
  '@langchain/mcp-adapters': '1.1.4',
  '@modelcontextprotocol/inspector': '2.12.0',
  '@modelcontextprotocol/sdk': '1.32.2',
  '@openai/agents': '0.20.0',
  'mcp-remote': '0.15.1',
}
