// Every snippet of docs/sdk.md compiles and runs against the real service, as does every command of docs/cli.md
// (reliability Z9).

import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readArgs } from '../../packages/cli/src/args.ts'
import { commands } from '../../packages/cli/src/commands.ts'
import { writtenFiles } from '../../scripts/written-files.ts'
import { buildCli, installSdk, project, tsc } from '../support/clients.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { publishedInVain } from '../support/published-in-vain.ts'
import { type Service, startService } from '../support/service.ts'
import { startUnitPort } from '../support/unit-port.ts'

const run = promisify(execFile)

let service: Service
let unitPort: Awaited<ReturnType<typeof startUnitPort>>
let team: TestTeam
let directory: string
beforeAll(async () => {
  unitPort = await startUnitPort()
  service = await startService(unitPort)
  team = await makeTeam(service)
  // Programs that the fake engine does not provide.
  service.engine.onExec(({ argv }) => (argv[0] === 'python3' ? { exitCode: 0, stdout: '42\n' } : null))
  service.engine.onExec(({ argv }) => (argv[0] === 'pg_isready' ? { exitCode: 0 } : null))
  directory = await mkdtemp(join(tmpdir(), 'berth-docs-'))
  await installSdk(directory)
  await mkdir(join(directory, 'node_modules/@types'))
  for (const types of ['@types/node', 'undici-types'])
    await symlink(join(project, 'node_modules', types), join(directory, 'node_modules', types))
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }')
})
afterAll(async () => {
  await service.close()
  unitPort.close()
  await rm(directory, { recursive: true })
})

it('the snippets of docs/sdk.md compile and run in order', { timeout: 120_000 }, async () => {
  const page = await readFile(join(project, 'docs/sdk.md'), 'utf8')
  const snippets = [...page.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, text = '']) => text)
  expect(snippets.length).toBeGreaterThan(7)
  const imports = new Set(snippets.flatMap((text) => text.match(/^import .*$/gm) ?? []))
  const names = [...imports].flatMap((line) => /\{ (.*) \}/.exec(line)?.[1]?.split(', ') ?? [])
  const [first = '', ...others] = snippets.map((text) => text.replaceAll(/^import .*\n/gm, ''))
  // The first snippet creates what the others use; each other snippet runs in its own block.
  const program = [
    `import { ${[...new Set(names)].join(', ')} } from '@berth/sdk'`,
    first,
    ...others.map((text) => `{\n${text}}`),
  ].join('\n')
  await writeFile(join(directory, 'page.ts'), program)
  const strict = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'esnext', '--types', 'node']
  await run(tsc, [...strict, '--skipLibCheck', 'page.ts'], {
    cwd: directory,
  }).catch(({ stdout }: { stdout: string }) => expect.unreachable(stdout))
  const env = { PATH: '', BERTH_URL: service.baseUrl, BERTH_API_KEY: team.key }
  const { stdout } = await run(process.execPath, ['page.ts'], { cwd: directory, env })
  expect(stdout).toMatch(/^42\n/)
  for (const line of ['exited 3', 'started', 'exitCode: 0, timedOut: false', 'gone'])
    expect(stdout).toContain(line)
  const left = await service.call<{ units: { name: string }[] }>('GET', '/v1/units', { key: team.key })
  expect(left.body.units).toEqual([])
})

it('the commands of docs/cli.md run in order', { timeout: 120_000 }, async () => {
  const page = await readFile(join(project, 'docs/cli.md'), 'utf8')
  const blocks = [...page.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, text = '']) => text)
  expect(blocks.length).toBeGreaterThan(2)
  const program = await buildCli(join(directory, 'cli'))
  const script = [
    `berth() { '${process.execPath}' '${program}' "$@"; }`,
    'set -e',
    'touch index.html',
    ...blocks,
  ]
  const env = { PATH: '/usr/bin:/bin', BERTH_URL: service.baseUrl, BERTH_API_KEY: team.key, HOME: directory }
  service.engine.onExec(({ argv }) => (argv[0] === 'ls' ? { exitCode: 0 } : null))
  const { stdout } = await run('bash', ['-c', script.join('\n')], { cwd: directory, env })
  expect(stdout).toMatch(/^42\nweb\n/)
  expect(stdout).toContain('DATABASE_URL=postgres://')
  expect(await publishedInVain(service, team.teamId)).toEqual([])
})

it('docs/cli-reference.md matches the help texts; otherwise run npm run gen', async () => {
  const path = 'docs/cli-reference.md'
  expect(await readFile(join(project, path), 'utf8')).toBe(writtenFiles()[path])
})

/** Splits a line into words like a shell. */
const wordsOf = (line: string) =>
  (line.replace(/ (?:<|>>?|\|) .*$/, '').match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ''))

it.each(
  Object.values(commands).flatMap((command) => command.examples.map(([line]) => [line, command] as const)),
)('the example berth %s is parsed by its command', (line, command) => {
  expect(line.startsWith(command.name)).toBe(true)
  const words = wordsOf(line.slice(command.name.length))
  expect(() => readArgs(command, words)).not.toThrow()
})
