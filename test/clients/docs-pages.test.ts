// Runs every code block marked `run` in the documentation against the real service, page by page. All other blocks
// are listed below with the reason why they are not run. See reliability Z9.

import { execFile } from 'node:child_process'
import { glob, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { clientExamples } from '../../src/api/docs/reference/client-examples.ts'
import { buildCli, installSdk, project, tsc } from '../support/clients.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { publishedInVain } from '../support/published-in-vain.ts'
import { type Service, startService } from '../support/service.ts'

const run = promisify(execFile)

/** Blocks that are not run, by their first words, with the reason. */
const notRun = new Map([
  ['docs/quick-start.md: export BERTH_URL', 'the test has a service and a key of its own'],
  ['docs/quick-start.md: curl -fsSL', 'test/clients/downloads.test.ts installs the CLI so'],
  ['docs/quick-start.md: npm install', 'test/clients/downloads.test.ts installs the SDK so'],
  ['docs/quick-start.md: sudo cp', 'it would change what this machine trusts'],
  [
    'docs/quick-start.md: claude mcp add',
    'the program is not there; test/api/mcp-docs.test.ts reads such lines',
  ],
])

type Block = { language: string; isRun: boolean; text: string }

const blocksOf = (page: string): Block[] =>
  [...page.matchAll(/^```(\w+)( run)?\n([^]*?)^```$/gm)].map(([, language = '', marked, text = '']) => ({
    language,
    isRun: marked !== undefined,
    text,
  }))

const pages = new Map<string, Block[]>()
for await (const file of glob('docs/{*,concepts/*,guides/*}.md', { cwd: project })) {
  const blocks = blocksOf(await readFile(join(project, file), 'utf8'))
  if (blocks.some(({ isRun }) => isRun)) pages.set(file, blocks)
}

let service: Service
let team: TestTeam
let directory: string
let cli: string
beforeAll(async () => {
  service = await startService()
  // Programs that the fake engine does not provide.
  const programs = ['python3', 'pg_isready', 'psql', 'cat', 'sh', 'true', 'echo']
  service.engine.onExec(({ argv }) =>
    programs.includes(argv[0] ?? '') ? { exitCode: 0, stdout: '42\n' } : null,
  )
  directory = await mkdtemp(join(tmpdir(), 'berth-pages-'))
  await installSdk(directory)
  await mkdir(join(directory, 'node_modules/@types'))
  for (const types of ['@types/node', 'undici-types'])
    await symlink(join(project, 'node_modules', types), join(directory, 'node_modules', types))
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }')
  cli = await buildCli(join(directory, 'cli'))
}, 120_000)
afterAll(async () => {
  await service.close()
  await rm(directory, { recursive: true })
})

async function runBlock({ language, text }: Block): Promise<void> {
  const env = { PATH: '/usr/bin:/bin', BERTH_URL: service.baseUrl, BERTH_API_KEY: team.key, HOME: directory }
  if (language === 'sh') {
    const script = `set -e\nberth() { '${process.execPath}' '${cli}' "$@"; }\n${text}`
    await run('bash', ['-c', script], { cwd: directory, env })
    return
  }
  await writeFile(join(directory, 'block.ts'), text)
  await run(process.execPath, ['block.ts'], { cwd: directory, env })
}

describe('the documentation', () => {
  it.each([...pages])('has only working examples in %s', { timeout: 240_000 }, async (_file, blocks) => {
    team = await makeTeam(service)
    for (const block of blocks.filter(({ isRun }) => isRun)) await runBlock(block)
    expect(await publishedInVain(service, team.teamId)).toEqual([])
  })

  it('has no unmarked code block without a reason in the list', () => {
    const left = [...pages].flatMap(([file, blocks]) =>
      blocks
        .filter(({ language, isRun }) => !isRun && ['sh', 'ts', 'python'].includes(language))
        .map(({ text }) => `${file}: ${text}`),
    )
    expect(left.filter((block) => ![...notRun.keys()].some((known) => block.startsWith(known)))).toEqual([])
    expect(left).toHaveLength(notRun.size)
  })

  it('has TypeScript examples that compile, also in the reference', {
    timeout: 120_000,
  }, async () => {
    const blocks = [...pages.values()].flat().filter(({ language, isRun }) => isRun && language === 'ts')
    const files = await Promise.all(
      blocks.map(async ({ text }, index) => {
        await writeFile(join(directory, `page-${index}.ts`), text)
        return `page-${index}.ts`
      }),
    )
    await writeFile(join(directory, 'reference.ts'), referenceProgram())
    const strict = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'esnext', '--types', 'node']
    await run(tsc, [...strict, '--skipLibCheck', 'reference.ts', ...files], { cwd: directory }).catch(
      ({ stdout }: { stdout: string }) => expect.unreachable(stdout),
    )
  })
})

/** Wraps each example of the reference in a function with the variables it assumes. */
function referenceProgram(): string {
  const head = [
    "import type { Berth, Process, Stack, Unit } from '@berth/sdk'",
    'declare const given: { berth: Berth; unit: Unit; stack: Stack; job: Process; tar: ReadableStream; lines: string[]; pieces: string[]; heard: object[] }',
  ]
  const examples = Object.values(clientExamples).flatMap(({ ts }, index) => {
    if (ts === undefined) return []
    const [, made] = /^const (\w+)/.exec(ts) ?? []
    const names = ['berth', 'unit', 'stack', 'job', 'tar', 'lines', 'pieces', 'heard']
    const taken = names.filter((name) => name !== made)
    return [`export async function example${index}() {\n  const { ${taken.join(', ')} } = given\n  ${ts}\n}`]
  })
  return [...head, ...examples].join('\n')
}
