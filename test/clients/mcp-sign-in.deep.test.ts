// OAuth sign-in with the published clients of the npm registry, as their users do it: from the address of /mcp alone to
// a tool call, with a person who consents. The clients take up about 260 MB, so only the deep tier installs them.

import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AgentList } from '../../src/contract/agent.ts'
import { publishedClients } from '../../scripts/mcp-client-packages.ts'
import { startAtPublicUrl } from '../support/front.ts'
import { makeSession, makeTeam, type TestTeam } from '../support/make.ts'
import { agreeAt, type Kept, type Provider, providerOf } from '../support/oauth-provider.ts'
import type { Service } from '../support/service.ts'

let service: Service
let dir: string

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'berth-sign-in-'))
  await writeFile(
    join(dir, 'package.json'),
    JSON.stringify({ private: true, dependencies: publishedClients }),
  )
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--silent']
  await promisify(execFile)('npm', args, { cwd: dir })
  service = await startAtPublicUrl()
}, 600_000)
afterAll(async () => {
  await service.close()
  await rm(dir, { recursive: true, force: true })
})

const url = () => `${service.app.config.publicUrl}/mcp`
const load = async (name: string): Promise<unknown> =>
  (await import(createRequire(join(dir, 'package.json')).resolve(name))) as unknown

/** Connects and returns the result of list_units as text. Without tokens it throws after it has asked for the browser. */
type Attempt = (authProvider: Provider) => Promise<string>

type Authorize = (
  provider: Provider,
  options: { serverUrl: string; authorizationCode: string },
) => Promise<string>

const aiSdk: Attempt = async (authProvider) => {
  type Tool = { execute: (args: object, options: object) => Promise<unknown> }
  type AiClient = { tools: () => Promise<Record<string, Tool>>; close: () => Promise<void> }
  const { createMCPClient } = (await load('@ai-sdk/mcp')) as {
    createMCPClient: (config: object) => Promise<AiClient>
  }
  const client = await createMCPClient({ transport: { type: 'http', url: url(), authProvider } })
  const tools = await client.tools()
  const answer = await tools['list_units']?.execute({}, { toolCallId: '1', messages: [] })
  await client.close()
  return JSON.stringify(answer)
}

const openAiAgents: Attempt = async (authProvider) => {
  type Server = {
    connect: () => Promise<void>
    callTool: (name: string, args: object) => Promise<unknown>
    close: () => Promise<void>
  }
  const { MCPServerStreamableHttp } = (await load('@openai/agents')) as {
    MCPServerStreamableHttp: new (options: object) => Server
  }
  const client = new MCPServerStreamableHttp({ url: url(), authProvider })
  try {
    await client.connect()
    return JSON.stringify(await client.callTool('list_units', {}))
  } finally {
    await client.close()
  }
}

const langChain: Attempt = async (authProvider) => {
  type Tool = { name: string; invoke: (args: object) => Promise<unknown> }
  type Servers = { getTools: () => Promise<Tool[]>; close: () => Promise<void> }
  const { MultiServerMCPClient } = (await load('@langchain/mcp-adapters')) as {
    MultiServerMCPClient: new (config: object) => Servers
  }
  const client = new MultiServerMCPClient({
    mcpServers: { berth: { transport: 'http', url: url(), authProvider } },
  })
  try {
    const tools = await client.getTools()
    return JSON.stringify(await tools.find(({ name }) => name === 'list_units')?.invoke({}))
  } finally {
    await client.close()
  }
}

async function expectConnected(team: TestTeam, answered: string): Promise<void> {
  expect(answered).toMatch(/no units|\bunits\b/i)
  const { body } = await service.call<AgentList>('GET', '/v1/agents', { key: team.key })
  expect(body.agents.filter(({ kind }) => kind === 'oauth')).toHaveLength(1)
  const rows = await service.app.db
    .selectFrom('audit')
    .innerJoin('credentials', 'credentials.id', 'audit.credential_id')
    .select(['audit.via', 'audit.status'])
    .where('audit.team_id', '=', team.teamId)
    .where('audit.action', '=', 'unit.list')
    .where('credentials.kind', '=', 'oauth')
    .execute()
  expect(rows).toEqual([{ via: 'mcp', status: 200 }])
}

test.each<[string, Attempt, () => Promise<Authorize>]>([
  ['@ai-sdk/mcp', aiSdk, async () => ((await load('@ai-sdk/mcp')) as { auth: Authorize }).auth],
  ['@openai/agents', openAiAgents, sdkAuth],
  ['@langchain/mcp-adapters', langChain, sdkAuth],
])(
  '%s signs in with its own OAuth flow and calls a tool',
  { timeout: 120_000 },
  async (_name, attempt, authOf) => {
    const team = await makeTeam(service)
    const cookie = await makeSession(service, team)
    const kept: Kept = { verifier: '', opened: [] }
    const provider = providerOf(kept)
    await expect(attempt(provider)).rejects.toThrow()
    const asked = kept.opened.at(-1)
    if (!asked) throw new Error('no browser was opened')
    const code = (await agreeAt(service, asked, cookie)).searchParams.get('code') ?? ''
    const authorize = await authOf()
    expect(await authorize(provider, { serverUrl: url(), authorizationCode: code })).toBe('AUTHORIZED')
    await expectConnected(team, await attempt(provider))
  },
)

/** Both clients are based on this SDK and leave it to the program to pass the code. */
async function sdkAuth(): Promise<Authorize> {
  return ((await load('@modelcontextprotocol/sdk/client/auth.js')) as { auth: Authorize }).auth
}

test('mcp-remote signs in with the browser and its loopback redirect and forwards a tool call', {
  timeout: 120_000,
}, async () => {
  const team = await makeTeam(service)
  const cookie = await makeSession(service, team)
  const env = { ...(process.env as Record<string, string>), MCP_REMOTE_CONFIG_DIR: join(dir, 'remote') }
  const command = join(dir, 'node_modules/.bin/mcp-remote')
  const transport = new StdioClientTransport({ command, args: [url(), '--allow-http'], env, stderr: 'pipe' })
  const client = new Client({ name: 'claude-ai', version: '0.1.0' })
  const opened = Promise.withResolvers<URL>()
  let said = ''
  transport.stderr?.on('data', (bytes: Buffer) => {
    said += bytes.toString()
    const [asked] = /http\S+\/oauth\/authorize\?\S+(?=\s)/.exec(said) ?? []
    if (asked !== undefined) opened.resolve(new URL(asked))
  })
  try {
    const connecting = client.connect(transport)
    const back = await agreeAt(service, await opened.promise, cookie)
    expect(back.hostname).toMatch(/^(?:localhost|127\.0\.0\.1)$/)
    expect((await fetch(back)).status).toBe(200)
    await connecting
    const answered = await client.callTool({ name: 'list_units', arguments: {} })
    await expectConnected(team, JSON.stringify(answered))
  } finally {
    await client.close()
  }
})
