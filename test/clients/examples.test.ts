// The files under examples/ against the real service.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect, it } from 'vitest'
import { project, useCli } from '../support/clients.ts'

const setup = useCli()
const example = async (path: string) => await readFile(join(project, 'examples', path), 'utf8')

it('the Claude Code configuration connects to the tools that its instructions name', async () => {
  const text = (await example('claude-code/.mcp.json'))
    .replaceAll(/\$\{BERTH_URL\}/g, setup.service.baseUrl)
    .replaceAll(/\$\{BERTH_API_KEY\}/g, setup.team.key)
  const { mcpServers } = JSON.parse(text) as {
    mcpServers: Record<string, { type: string; url: string; headers: Record<string, string> }>
  }
  const { type, url = '', headers = {} } = mcpServers.berth ?? {}
  expect(type).toBe('http')
  const client = new Client({ name: 'claude-code', version: '2' }, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }))
  const tools = (await client.listTools()).tools.map(({ name }) => name)
  const named = (await example('claude-code/CLAUDE.md')).match(/`[a-z]+_[a-z]+`|`fork`/g) ?? []
  expect(named.length).toBeGreaterThan(6)
  for (const name of named) expect(tools).toContain(name.replaceAll('`', ''))
  await client.close()
})

it('the GitHub Actions steps run tests in a unit, exit with their code and remove the unit', async () => {
  const workflow = await example('github-actions/berth.yml')
  const steps = [...workflow.matchAll(/^ {6}- name: (.*)\n(?: {8}if: .*\n)?((?: {8}.*\n)+)/gm)].map(
    ([, name = '', body = '']) => ({ name, script: body.replace(/^ {8}run: (?:\|\n)?/, '') }),
  )
  expect(steps.map(({ name }) => name)).toHaveLength(5)
  const [, ...inUnit] = steps
  const { engine, baseUrl } = setup.service
  engine.onExec(({ argv }) => (argv[0] === 'node' ? { exitCode: 3, stdout: 'tests ran\n' } : null))
  engine.onExec(({ argv }) =>
    argv.includes('-c') && argv.at(-1)?.includes('tar -xzf') ? { exitCode: 0 } : null,
  )
  await writeFile(join(setup.directory, 'a.test.js'), '')
  const env = { PATH: '/usr/bin:/bin', BERTH_URL: baseUrl, BERTH_API_KEY: setup.team.key, UNIT: 'ci-17-1' }
  const run = async (script: string) =>
    await promisify(execFile)(
      'bash',
      ['-e', '-o', 'pipefail', '-c', `berth() { '${process.execPath}' '${setup.program}' "$@"; }\n${script}`],
      { cwd: setup.directory, env: { ...env, HOME: setup.directory } },
    ).then(
      ({ stdout }) => ({ code: 0, stdout }),
      ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
        code,
        stdout,
        stderr,
      }),
    )
  const ended = []
  for (const { script } of inUnit) ended.push(await run(script))
  expect(ended).toMatchObject([
    { code: 0, stdout: 'ci-17-1\n' },
    { code: 0 },
    { code: 3, stdout: 'tests ran\n' },
    { code: 0 },
  ])
  const left = await setup.service.call<{ units: unknown[] }>('GET', '/v1/units', { key: setup.team.key })
  expect(left.body.units).toEqual([])
})
