// `npm run mcp:clients`: the published MCP clients that the npm registry has, against /mcp: each connects with an API key, lists the
// tools, makes a unit, runs a command (hearing of its progress, where the client can), gives one up in the middle, and destroys the unit.
// The clients are some 260 MB, so they are installed for the run; `--dir DIR` keeps them for the next one. A Postgres and a server of its
// own, the engine in memory. Ends with 1 if a client fails.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { newEra, oldEra } from '../test/support/mcp.ts'
import { startScratchService } from '../test/support/scratch-service.ts'
import { publishedClients } from './mcp-client-packages.ts'

const TOOLS = 21

type Settings = { signal?: AbortSignal; onProgress?: (message: string) => void }
type Session = {
  /** The names of the tools. */
  list: () => Promise<string[]>
  /** Answers all that the client shows of the result, as one text. */
  call: (name: string, args: Record<string, unknown>, settings?: Settings) => Promise<string>
  close: () => Promise<void>
}
type Connect = (where: { url: string; key: string; dir: string }) => Promise<Session>

const { values } = parseArgs({ options: { dir: { type: 'string' } } })
const { dir: scratch, db, teamId, key, server, stop } = await startScratchService('clients')
const dir = values.dir ?? join(scratch, 'clients')
const bearer = `Bearer ${key.secret}`

const published =
  (connect: typeof newEra): Connect =>
  async () => {
    const session = await connect({ baseUrl: server.baseUrl, key: key.secret })
    return {
      list: async () => (await session.tools()).map(({ name }) => name),
      call: async (name, args, settings) => (await session.call(name, args, settings)).text,
      close: async () => await session.close(),
    }
  }

/** By the command line: one process for each request. */
const inspector =
  (era: string): Connect =>
  async ({ url }) => {
    const cli = join(dir, 'node_modules/.bin/mcp-inspector')
    const base = ['--cli', url, '--transport', 'http', '--protocol-era', era]
    const header = ['--header', `Authorization: ${bearer}`]
    const run = async (args: string[], signal?: AbortSignal) => {
      const options = { maxBuffer: 1e7, ...(signal ? { signal } : {}) }
      return (await promisify(execFile)(cli, [...base, ...args, ...header], options)).stdout
    }
    return {
      list: async () => {
        const { tools } = JSON.parse(await run(['--method', 'tools/list', '--strict'])) as {
          tools: { name: string }[]
        }
        return tools.map(({ name }) => name)
      },
      call: async (name, args, { signal } = {}) => {
        const pairs = Object.entries(args).flatMap(([argument, value]) => [
          '--tool-arg',
          `${argument}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
        ])
        return await run(['--method', 'tools/call', '--tool-name', name, ...pairs], signal)
      },
      close: async () => {},
    }
  }

/** A bridge for programs that only start local servers. */
const remote: Connect = async ({ url }) => {
  const command = join(dir, 'node_modules/.bin/mcp-remote')
  const env = { ...(process.env as Record<string, string>), MCP_REMOTE_CONFIG_DIR: join(scratch, 'remote') }
  const args = [url, '--allow-http', '--header', `Authorization:${bearer}`]
  const client = new Client({ name: 'claude-ai', version: '0.1.0' })
  await client.connect(new StdioClientTransport({ command, args, env, stderr: 'ignore' }))
  return {
    list: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args, { signal, onProgress } = {}) =>
      JSON.stringify(
        await client.callTool({ name, arguments: args }, undefined, {
          ...(signal ? { signal } : {}),
          ...(onProgress ? { onprogress: ({ message }) => onProgress(message ?? '') } : {}),
        }),
      ),
    close: async () => await client.close(),
  }
}

type AiTool = { execute: (args: object, options: object) => Promise<unknown> }

const aiSdk: Connect = async ({ url }) => {
  const { createMCPClient } = (await load('@ai-sdk/mcp')) as {
    createMCPClient: (
      config: object,
    ) => Promise<{ tools: () => Promise<Record<string, AiTool>>; close: () => Promise<void> }>
  }
  const transport = { type: 'http', url, headers: { authorization: bearer } }
  const client = await createMCPClient({ transport })
  const tools = await client.tools()
  return {
    list: async () => Object.keys(tools),
    call: async (name, args, { signal } = {}) =>
      JSON.stringify(
        await tools[name]?.execute(args, { toolCallId: '1', messages: [], abortSignal: signal }),
      ),
    close: async () => await client.close(),
  }
}

type AgentsServer = {
  connect: () => Promise<void>
  listTools: () => Promise<{ name: string }[]>
  callTool: (name: string, args: object, meta: null, options: object) => Promise<unknown>
  close: () => Promise<void>
}

const openAiAgents: Connect = async ({ url }) => {
  const { MCPServerStreamableHttp } = (await load('@openai/agents')) as {
    MCPServerStreamableHttp: new (options: object) => AgentsServer
  }
  const client = new MCPServerStreamableHttp({
    url,
    requestInit: { headers: { authorization: bearer } },
    clientSessionTimeoutSeconds: 60,
  })
  await client.connect()
  return {
    list: async () => (await client.listTools()).map(({ name }) => name),
    call: async (name, args, { signal } = {}) =>
      JSON.stringify(await client.callTool(name, args, null, { signal })),
    close: async () => await client.close(),
  }
}

type LangChainTool = { name: string; invoke: (args: object, options: object) => Promise<unknown> }

const langChain: Connect = async ({ url }) => {
  const { MultiServerMCPClient } = (await load('@langchain/mcp-adapters')) as {
    MultiServerMCPClient: new (
      config: object,
    ) => {
      getTools: () => Promise<LangChainTool[]>
      close: () => Promise<void>
    }
  }
  const heard: { current?: (message: string) => void } = {}
  const client = new MultiServerMCPClient({
    mcpServers: { berth: { transport: 'http', url, headers: { authorization: bearer } } },
    onProgress: ({ message }: { message?: string }) => heard.current?.(message ?? ''),
  })
  const tools = await client.getTools()
  return {
    list: async () => tools.map(({ name }) => name),
    call: async (name, args, { signal, onProgress } = {}) => {
      if (onProgress) heard.current = onProgress
      const tool = tools.find((each) => each.name === name)
      return JSON.stringify(await tool?.invoke(args, { signal }))
    },
    close: async () => await client.close(),
  }
}

/** `progress`: whether the client tells the program of it. */
const clients: { name: string; connect: Connect; progress: boolean }[] = [
  { name: '@modelcontextprotocol/client', connect: published(newEra), progress: true },
  { name: '@modelcontextprotocol/sdk', connect: published(oldEra), progress: true },
  { name: 'inspector, legacy', connect: inspector('legacy'), progress: false },
  { name: 'inspector, modern', connect: inspector('modern'), progress: false },
  { name: 'mcp-remote', connect: remote, progress: true },
  { name: '@ai-sdk/mcp', connect: aiSdk, progress: false },
  { name: '@openai/agents', connect: openAiAgents, progress: false },
  { name: '@langchain/mcp-adapters', connect: langChain, progress: true },
]

try {
  await install()
  for (const [index, { name, connect, progress }] of clients.entries()) {
    try {
      const told = await walk(connect, { unit: `unit-${index}`, progress })
      console.log(`ok      ${name.padEnd(30)} ${told}`)
    } catch (error) {
      process.exitCode = 1
      console.log(`FAILED  ${name.padEnd(30)} ${error instanceof Error ? error.message : String(error)}`)
    }
  }
} finally {
  await stop()
}

async function install(): Promise<void> {
  await mkdir(dir, { recursive: true })
  await writeFile(
    join(dir, 'package.json'),
    JSON.stringify({ private: true, dependencies: publishedClients }),
  )
  const npm = spawn('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'], {
    cwd: dir,
    stdio: 'inherit',
  })
  const [code] = (await once(npm, 'close')) as [number | null]
  if (code !== 0) throw new Error('the clients could not be installed')
}

async function load(name: string): Promise<unknown> {
  return (await import(createRequire(join(dir, 'package.json')).resolve(name))) as unknown
}

async function walk(
  connect: Connect,
  { unit, progress }: { unit: string; progress: boolean },
): Promise<string> {
  const session = await connect({ url: `${server.baseUrl}/mcp`, key: key.secret, dir })
  try {
    must((await session.list()).length === TOOLS, 'not all tools were listed')
    const made = await session.call('create_unit', { name: unit, image: 'node:22' })
    must(made.includes('running'), `no unit was made: ${made.slice(0, 300)}`)

    const heard: string[] = []
    const onProgress = (message: string) => heard.push(message)
    const command = 'echo compiling; sleep 4; echo done'
    const ran = await session.call('run_command', { unit, command }, progress ? { onProgress } : {})
    must(ran.includes('exit 0') && ran.includes('done'), `the command failed: ${ran.slice(0, 300)}`)
    must(!progress || heard.some((message) => message.includes('compiling')), 'no progress was heard')

    const enough = new AbortController()
    const endless = { unit, command: 'sleep infinity', timeout_seconds: 3600 }
    const given = session.call('run_command', endless, { signal: enough.signal }).then(
      () => 'answered',
      () => 'gave up',
    )
    await until(async () => (await commandsOf(unit)) >= 2)
    enough.abort()
    must((await given) === 'gave up', 'the client could not give up')
    await until(async () => (await gaveUp(unit)) === 1)

    const gone = await session.call('destroy_unit', { unit, confirm: unit })
    must(gone.includes('destroyed'), `the unit was not destroyed: ${gone.slice(0, 300)}`)
    const agent = await agentOf(unit)
    return `key, list, create, ${progress ? 'progress, ' : ''}cancel, destroy · in the log as ${agent}`
  } finally {
    await session.close()
  }
}

function must(holds: boolean, message: string): void {
  if (!holds) throw new Error(message)
}

async function rowsOf(unit: string) {
  return await db
    .selectFrom('audit')
    .innerJoin('units', 'units.id', 'audit.target')
    .select(['audit.action', 'audit.status', 'audit.agent_name', 'audit.agent_version'])
    .where('audit.team_id', '=', teamId)
    .where('units.name', '=', unit)
    .execute()
}

async function commandsOf(unit: string): Promise<number> {
  return (await rowsOf(unit)).filter(({ action }) => action === 'unit.exec').length
}

async function gaveUp(unit: string): Promise<number> {
  return (await rowsOf(unit)).filter(({ action, status }) => action === 'unit.exec' && status === 499).length
}

async function agentOf(unit: string): Promise<string> {
  const row = (await rowsOf(unit)).find(({ action }) => action === 'unit.destroy')
  return `${row?.agent_name ?? 'nobody'} ${row?.agent_version ?? ''}`.trim()
}

/** Throws after 30 s. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 300; tries += 1) {
    if (await holds()) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('what should have come did not')
}
