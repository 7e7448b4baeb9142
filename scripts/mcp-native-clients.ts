// `npm run mcp:native-clients`: Claude Code and Codex against /mcp, each where its program is found in PATH: adds the server with an API key
// to a fresh configuration, and asks the program whether it connects; Codex then calls a tool by its app server. No account and no
// model is needed. A Postgres and a server of its own, the engine in memory. Ends with 1 if a program that is here fails.

import { execFile, spawn } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { startScratchService } from '../test/support/scratch-service.ts'

const { dir, db, teamId, key, server, stop } = await startScratchService('native-clients')
const url = `${server.baseUrl}/mcp`
const env = { ...process.env, HOME: join(dir, 'home'), CODEX_HOME: join(dir, 'codex'), BERTH_KEY: key.secret }

/** Answers what the program said. */
const programs: Record<string, () => Promise<string>> = {
  claude: async () => {
    const header = ['--header', `Authorization: Bearer ${key.secret}`]
    await run('claude', ['mcp', 'add', '--transport', 'http', 'berth', url, ...header])
    const listed = await run('claude', ['mcp', 'list'])
    if (!/berth: .*Connected/.test(listed)) throw new Error(`it did not connect: ${listed}`)
    return 'mcp add, mcp list: connected'
  },
  codex: async () => {
    await run('codex', ['mcp', 'add', 'berth', '--url', url, '--bearer-token-env-var', 'BERTH_KEY'])
    const listed = await run('codex', ['mcp', 'list'])
    if (!listed.includes(url)) throw new Error(`it did not keep the server: ${listed}`)
    const answer = await callByAppServer('list_units')
    if (!answer.includes('"units"')) throw new Error(`the tool call failed: ${answer}`)
    return 'mcp add, mcp list, a tool call by app-server'
  },
}

try {
  for (const path of [env.HOME, env.CODEX_HOME]) await mkdir(path)
  for (const [name, meet] of Object.entries(programs)) {
    const version = await run(name, ['--version']).catch(() => null)
    if (version === null) {
      console.log(`not here  ${name}`)
      continue
    }
    try {
      const told = await meet()
      console.log(`ok        ${version.trim()}: ${told} · in the log as ${await lastAgent()}`)
    } catch (error) {
      process.exitCode = 1
      console.log(`FAILED    ${version.trim()}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
} finally {
  await stop()
}

async function run(program: string, args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, { env, cwd: dir, timeout: 120_000 })
  return stdout
}

async function lastAgent(): Promise<string> {
  const row = await db
    .selectFrom('audit')
    .select(['agent_name', 'agent_version'])
    .where('team_id', '=', teamId)
    .orderBy('id', 'desc')
    .executeTakeFirst()
  return `${row?.agent_name ?? 'nobody'} ${row?.agent_version ?? ''}`.trim()
}

type AppAnswer = { id?: number; result?: { thread?: { id: string } } }

/** JSON-RPC on standard input and output: a thread, and a tool call in it, without a model. */
async function callByAppServer(tool: string): Promise<string> {
  const app = spawn('codex', ['app-server'], { env, cwd: dir, stdio: ['pipe', 'pipe', 'ignore'] })
  const waiting = new Map<number, (answer: AppAnswer) => void>()
  const ended = new Promise<never>((_resolve, reject) => {
    app.once('error', reject)
    app.once('exit', () => reject(new Error('the app server ended')))
    setTimeout(() => reject(new Error('the app server did not answer')), 120_000).unref()
  })
  createInterface({ input: app.stdout }).on('line', (line) => {
    const message = JSON.parse(line) as AppAnswer
    waiting.get(message.id ?? -1)?.(message)
  })
  let count = 0
  const ask = async (method: string, params: object) => {
    const id = (count += 1)
    const answer = new Promise<AppAnswer>((resolve) => waiting.set(id, resolve))
    app.stdin.write(`${JSON.stringify({ id, method, params })}\n`)
    return await Promise.race([answer, ended])
  }
  try {
    await ask('initialize', { clientInfo: { name: 'berth-check', title: 'Berth', version: '1.0.0' } })
    app.stdin.write(`${JSON.stringify({ method: 'initialized' })}\n`)
    const { result } = await ask('thread/start', {})
    const called = { threadId: result?.thread?.id, server: 'berth', tool, arguments: {} }
    return JSON.stringify(await ask('mcpServer/tool/call', called))
  } finally {
    ended.catch(() => {})
    app.kill()
  }
}
