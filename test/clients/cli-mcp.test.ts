// `berth mcp`: programs that only start servers reach /mcp of the service, by the published clients of both eras.

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

it('a client of 2026 makes a unit by it', async () => {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new StdioClientTransport(server()))
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('run_command')
  expect((await client.callTool(made)).structuredContent).toMatchObject({ units: [{ state: 'running' }] })
  expect((await client.callTool(gone)).isError ?? false).toBe(false)
  await client.close()
})

it('a client of 2025 makes a unit by it', async () => {
  const client = new OldClient({ name: 'test', version: '1' })
  await client.connect(new OldTransport(server()))
  expect((await client.callTool(made)).structuredContent).toMatchObject({ units: [{ state: 'running' }] })
  expect((await client.callTool(gone)).isError ?? false).toBe(false)
  await client.close()
})

it('a request is answered with an error where the service is away, or the key is none', async () => {
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
