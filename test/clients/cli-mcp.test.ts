// `berth mcp`: programs that only start servers reach /mcp of the service, by the published clients of both eras.

import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { buildCli, runCli } from '../support/clients.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

// Each step is a process of its own.
vi.setConfig({ testTimeout: 120_000 })

let service: Service
let team: TestTeam
let directory: string
let program: string
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  directory = await mkdtemp(join(tmpdir(), 'berth-cli-'))
  program = await buildCli(join(directory, 'dist'))
})
afterAll(async () => {
  vi.resetConfig()
  await service.close()
  await rm(directory, { recursive: true })
})

const server = () => ({
  command: process.execPath,
  args: [program, 'mcp'],
  env: { PATH: '', BERTH_URL: service.baseUrl, BERTH_API_KEY: team.key },
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
    const { stdout } = await runCli(program, ['mcp'], { ...server().env, ...env }, line)
    expect(JSON.parse(stdout)).toMatchObject({
      jsonrpc: '2.0',
      id: 7,
      error: { message: expect.any(String) },
    })
  }
})
