// Every snippet of docs/sdk.md is a program that compiles and runs against the real service.

import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

const run = promisify(execFile)
const project = fileURLToPath(new URL('../..', import.meta.url))

let service: Service
let team: TestTeam
let directory: string
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  // Programs that the fake engine does not have.
  service.engine.onExec(({ argv }) => (argv[0] === 'python3' ? { exitCode: 0, stdout: '42\n' } : null))
  service.engine.onExec(({ argv }) => (argv[0] === 'pg_isready' ? { exitCode: 0 } : null))
  directory = await mkdtemp(join(tmpdir(), 'berth-docs-'))
  // As an installed package: with what it publishes.
  await run('npm', ['run', 'build'], { cwd: join(project, 'packages/sdk') })
  await mkdir(join(directory, 'node_modules/@berth'), { recursive: true })
  await mkdir(join(directory, 'node_modules/@types'))
  await symlink(join(project, 'packages/sdk'), join(directory, 'node_modules/@berth/sdk'))
  await symlink(join(project, 'node_modules/@types/node'), join(directory, 'node_modules/@types/node'))
  await symlink(join(project, 'node_modules/undici-types'), join(directory, 'node_modules/undici-types'))
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }')
})
afterAll(async () => {
  await service.close()
  await rm(directory, { recursive: true })
})

it('the snippets of the SDK compile and run, one after the other', { timeout: 120_000 }, async () => {
  const page = await readFile(join(project, 'docs/sdk.md'), 'utf8')
  const snippets = [...page.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, text = '']) => text)
  expect(snippets.length).toBeGreaterThan(7)
  const imports = new Set(snippets.flatMap((text) => text.match(/^import .*$/gm) ?? []))
  const names = [...imports].flatMap((line) => /\{ (.*) \}/.exec(line)?.[1]?.split(', ') ?? [])
  const [first = '', ...others] = snippets.map((text) => text.replaceAll(/^import .*\n/gm, ''))
  // The first one makes what the others go on with; each of those stands for itself.
  const program = [
    `import { ${[...new Set(names)].join(', ')} } from '@berth/sdk'`,
    first,
    ...others.map((text) => `{\n${text}}`),
  ].join('\n')
  await writeFile(join(directory, 'page.ts'), program)
  const strict = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'esnext', '--types', 'node']
  await run(join(project, 'node_modules/.bin/tsc'), [...strict, '--skipLibCheck', 'page.ts'], {
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
