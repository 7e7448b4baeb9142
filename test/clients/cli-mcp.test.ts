// `berth mcp` connects programs that can only start local servers to /mcp of the service. Tested with published MCP
// clients of both protocol versions.

import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { expect, it } from 'vitest'
import { runCli, useCli } from '../support/clients.ts'

const setup = useCli()

const server = () => ({
  command: process.execPath,
  args: [setup.program, 'mcp'],
  env: { PATH: '', BERTH_URL: setup.service.baseUrl, BERTH_API_KEY: setup.team.key },
})
const made = { name: 'create_unit', arguments: { name: 'by-stdio', image: 'node:22' } }
const gone = { name: 'destroy_unit', arguments: { unit: 'by-stdio', confirm: 'by-stdio' } }

it('an MCP client of 2026 creates and destroys a unit through berth mcp', async () => {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new StdioClientTransport(server()))
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('run_command')
  expect((await client.callTool(made)).structuredContent).toMatchObject({ units: [{ state: 'running' }] })
  expect((await client.callTool(gone)).isError ?? false).toBe(false)
  await client.close()
})

it('an MCP client of 2025 creates and destroys a unit through berth mcp', async () => {
  const client = new OldClient({ name: 'test', version: '1' })
  await client.connect(new OldTransport(server()))
  expect((await client.callTool(made)).structuredContent).toMatchObject({ units: [{ state: 'running' }] })
  expect((await client.callTool(gone)).isError ?? false).toBe(false)
  await client.close()
})

it('berth mcp responds with a JSON-RPC error if the service is unreachable or the key is wrong', async () => {
  const line = `${JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/list', params: {} })}\n`
  for (const env of [{ BERTH_URL: 'http://127.0.0.1:9' }, { BERTH_API_KEY: 'berth_live_wrong' }]) {
    const { stdout } = await runCli(setup.program, ['mcp'], { ...server().env, ...env }, line)
    expect(JSON.parse(stdout)).toMatchObject({
      jsonrpc: '2.0',
      id: 7,
      error: { message: expect.any(String) },
    })
  }
})
