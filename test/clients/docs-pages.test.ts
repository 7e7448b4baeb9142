// Runs every code block marked `run` in the documentation against the real service, page by page. All other blocks
// are listed below with the reason why they are not run. See reliability Z9.

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { contents, listed, readersOfPage } from '../../src/api/docs/contents.ts'
import { clientExamples } from '../../src/api/docs/reference/client-examples.ts'
import { buildCli, installSdk, project, tsc } from '../support/clients.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { hasPythonPackages, runPython } from '../support/python.ts'
import { publishedInVain } from '../support/published-in-vain.ts'
import { type Service, startService } from '../support/service.ts'

const run = promisify(execFile)

/** Pages of users whose blocks are run by a test of their own, or whose programs run where this test cannot. */
const ranElsewhere = new Map([
  ['docs/cli.md', 'test/clients/docs.test.ts runs them in order'],
  ['docs/sdk.md', 'test/clients/docs.test.ts runs them in order'],
  ['docs/sdk-reference.md', 'declarations of the SDK, which are generated'],
  ['docs/python.md', 'test/clients/python.test.ts runs them in order'],
  ['docs/mcp.md', 'test/api/mcp-docs.test.ts reads the commands and runs the programs'],
  ['docs/comparison.md', 'most are for services of others; examples of Berth are as in the quick start'],
  ['docs/guides/frameworks.md', 'test/clients/python-adapters.test.ts and test/frameworks run them'],
  ['docs/guides/e2b.md', 'test/flows/e2b-*.host.test.ts run programs of the E2B SDK'],
  [
    'docs/guides/hosted-agents.md',
    'they need an account at a vendor; test/clients/hosted-agents.deep.test.ts plays one',
  ],
  ['docs/guides/claim-and-spawn.md', 'a vendor starts it; test/clients/agents-spawn.test.ts does'],
  ['docs/guides/coding-agents.md', 'they need an account at a vendor and a repository'],
  ['docs/guides/codex-elsewhere.md', 'they need an account at a vendor and a repository'],
  ['docs/guides/browser.md', 'test/flows/browser.deep.test.ts runs the recipe on real containers'],
  ['docs/guides/code.md', 'test/flows/code.host.test.ts runs such programs on real containers'],
])

/** Blocks that are not run, by their first words, with the reason. */
const notRun = new Map([
  [
    'README.md: git clone',
    'it would set up this machine; test/flows/first-steps.host.test.ts begins behind it',
  ],
  ['README.md: curl -fsSL', 'test/clients/downloads.test.ts installs the CLI so'],
  [
    'README.md: from berth import Berth\nwith',
    'test/flows/code.host.test.ts runs such programs on real containers',
  ],
  ['README.md: await using unit', 'the same'],
  ['README.md: claude mcp add', 'as in the quick start'],
  ['docs/endpoints.md: curl -H', 'it needs a program that listens; test/api/ports.test.ts calls one'],
  ['docs/files.md: curl -X PUT', 'one call, as test/api/files.test.ts makes it'],
  ['docs/files.md: const bytes', 'two lines for within a program'],
  ['docs/guides/secrets.md: await berth', 'it goes on with the program above it, as in docs/sdk.md'],
  ['docs/guides/secrets.md: berth.secrets', 'it goes on with the program above it, as in docs/python.md'],
  ['docs/guides/secrets.md: await unit', 'it goes on with the program above it'],
  ['docs/guides/docker.md: berth recipe', 'the engine in memory has no containers in units'],
  ['docs/terminal.md: berth run', 'it needs a terminal; test/clients/cli-terminal.test.ts opens some'],
  ['docs/install.md: curl -fsSL', 'test/clients/downloads.test.ts installs the CLI so'],
  ['docs/install.md: npm install', 'test/clients/downloads.test.ts installs the SDK so'],
  ['docs/install.md: python3 -m venv', 'test/clients/downloads.test.ts installs the library so'],
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

const pages = new Map<string, Block[]>([
  ['README.md', blocksOf(await readFile(join(project, 'README.md'), 'utf8'))],
])
for (const { readers, pages: listed } of contents)
  for (const { file } of readers === 'users' ? listed : []) {
    if (ranElsewhere.has(file) || !existsSync(join(project, file))) continue
    pages.set(file, blocksOf(await readFile(join(project, file), 'utf8')))
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

const environment = () => ({
  PATH: '/usr/bin:/bin',
  BERTH_URL: service.baseUrl,
  BERTH_API_KEY: team.key,
  HOME: directory,
  OPENAI_API_KEY: 'sk-proj-0000',
})

async function runShell(text: string, cwd: string): Promise<void> {
  const script = `set -e\nberth() { '${process.execPath}' '${cli}' "$@"; }\n${text}`
  await run('bash', ['-c', script], { cwd, env: environment() })
}

async function runProgram(language: string, text: string, cwd: string): Promise<void> {
  if (language === 'python') {
    // `npm test` installs what it needs; `npm run check` runs without.
    if (hasPythonPackages('httpx')) await runPython(['-c', text], { cwd, env: environment() })
    return
  }
  await writeFile(join(cwd, 'block.ts'), text)
  await run(process.execPath, ['block.ts'], { cwd, env: environment() })
}

describe('the documentation', () => {
  it.each([...pages].filter(([, blocks]) => blocks.some(({ isRun }) => isRun)))(
    'has only working examples in %s',
    { timeout: 240_000 },
    async (_file, blocks) => {
      team = await makeTeam(service)
      // A reader begins in an empty directory, and types what follows each other into one shell.
      const cwd = await mkdtemp(join(directory, 'page-'))
      let typed = ''
      for (const { language, text } of blocks.filter(({ isRun }) => isRun)) {
        if (language === 'sh') {
          typed += text
          continue
        }
        await runShell(typed, cwd)
        typed = ''
        await runProgram(language, text, cwd)
      }
      await runShell(typed, cwd)
      expect(await publishedInVain(service, team.teamId)).toEqual([])
    },
  )

  it('has every page of users in its navigation, so that its blocks are run', async () => {
    const all = await readdir(join(project, 'docs'), { recursive: true })
    const ofUsers = all.filter((path) => path.endsWith('.md') && readersOfPage(path.slice(0, -3)) === 'users')
    const known = new Set(listed.map(({ file }) => file))
    expect(ofUsers.filter((path) => !known.has(`docs/${path}`))).toEqual([])
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
