// OpenAI's Codex of npm on this host, as a laptop or the vendor runs it: with a model of the test's own.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { CODEX_VERSION } from '../../src/domain/recipes/catalog/codex.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import type { CodexRelay } from './codex-relay.ts'
import type { FakeModels } from './fake-models.ts'

/** Returns the path of the program, in the directory. */
export async function installCodex(directory: string): Promise<string> {
  const program = join(directory, 'node_modules/.bin/codex')
  const isThere = await access(program).then(
    () => true,
    () => false,
  )
  const args = ['install', '--no-audit', '--no-fund', '--prefix', directory, `@openai/codex@${CODEX_VERSION}`]
  // It trusts what this process trusts, such as the authority of a proxy before the registry.
  const { PATH = '', NODE_EXTRA_CA_CERTS = '' } = process.env
  if (!isThere) await runOrThrow('npm', args, { timeoutMs: 300_000, env: { PATH, NODE_EXTRA_CA_CERTS } })
  return program
}

type Start = { args: string[]; home: string; env?: Record<string, string>; cwd?: string; stdin?: string }

export function startCodex(program: string, { args, home, env = {}, cwd, stdin = '' }: Start): ChildProcess {
  const { PATH = '' } = process.env
  const child = spawn(program, args, { env: { PATH, HOME: home, ...env }, cwd })
  child.stdin.end(stdin)
  child.stdout.resume()
  child.stderr.resume()
  return child
}

type Turn = {
  /** For its home: a directory of the test's own. */
  directory: string
  models: FakeModels
  /** Of the model. */
  key: string
  /** What `environments.toml` says of where commands run. */
  environments?: string
  /** Or the relay, and the id of an environment there. */
  relay?: { relay: CodexRelay; id: string }
  env?: Record<string, string>
}

/** One turn, whose commands run elsewhere; returns what it printed. */
export async function takeTurn(
  program: string,
  { directory, models, key, environments, relay, env = {} }: Turn,
): Promise<string> {
  const server = createServer(models.answer).listen(0, '127.0.0.1')
  server.on('upgrade', (_, socket) =>
    socket.end('HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n'),
  )
  await once(server, 'listening')
  const home = join(directory, environments === undefined ? 'harness' : 'laptop')
  const own = join(home, '.codex')
  await mkdir(own, { recursive: true })
  const model = `openai_base_url = "http://127.0.0.1:${(server.address() as AddressInfo).port}/v1"\n`
  await writeFile(join(own, 'config.toml'), model)
  await writeFile(join(own, 'auth.json'), JSON.stringify({ auth_mode: 'apikey', OPENAI_API_KEY: key }))
  if (environments !== undefined) await writeFile(join(own, 'environments.toml'), environments)
  const args = ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', 'Try it.']
  // A directory that both sides have.
  const child = startCodex(program, {
    args,
    home,
    cwd: '/tmp',
    env: {
      ...env,
      ...(relay && {
        CODEX_EXEC_SERVER_NOISE_REGISTRY_URL: relay.relay.url,
        CODEX_EXEC_SERVER_NOISE_ENVIRONMENT_ID: relay.id,
        CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN: relay.relay.keys.harness,
      }),
    },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (data: Buffer) => void (said += data.toString()))
  await once(child, 'close')
  server.closeAllConnections()
  server.close()
  return said
}
