// No page, example or message tells a reader to fetch a package by a name that does not belong to us: `berth` is a package of
// other projects on PyPI and in the npm registry, and a name that is free today may be taken tomorrow. Ours are installed
// from a Berth, which serves them, or from files of the checkout.

import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { project } from '../support/clients.ts'
import { packagesIn, workspacesIn } from '../support/install-commands.ts'

/** Packages of others that readers may be told to fetch, by their names in the registries. */
const thirdParty = new Set([
  '@anthropic-ai/sdk',
  '@computesdk/provider',
  '@mastra/core',
  '@openai/agents',
  '@openai/codex',
  'ai',
  'computesdk',
  'anthropic',
  'deepagents',
  'httpx2',
  'langchain',
  'mcp-remote',
  'playwright',
  'playwright-core',
  'vitest',
  'websockets',
  'zod',
])

/** What people read: pages, examples, and the messages of programs. */
const texts = new Map<string, string>()
for await (const path of glob(
  [
    '{*.md,docs/**/*.md,packages/*/README.md,packages/python/pyproject.toml}',
    'examples/**/*.{md,ts,json,yml}',
    'packages/python/src/**/*.py',
    '{src,packages/*/src}/**/*.{ts,tsx}',
    'scripts/*.sh',
  ],
  { cwd: project },
))
  texts.set(path, await readFile(join(project, path), 'utf8'))

/** Only what is code in a page: in its prose, `npm` and its verbs may be words. */
const codeOf = (path: string, text: string) =>
  path.endsWith('.md')
    ? [...text.matchAll(/^```[^\n]*\n([^]*?)^```$|`([^`\n]+)`/gm)]
        .map(([, block, span]) => block ?? span)
        .join('\n')
    : text

const code = [...texts].map(([path, text]) => [path, codeOf(path, text)] as const)

it('no text tells a reader to install a package that is neither a file of ours nor a known one of others', () => {
  expect(texts.size).toBeGreaterThan(400)
  const strange = code.flatMap(([path, text]) =>
    packagesIn(text)
      .filter((name) => !thirdParty.has(name))
      .map((name) => `${path}: ${name}`),
  )
  expect(strange).toEqual([])
})

it('every known package of others is named in a text', () => {
  const named = new Set(code.flatMap(([, text]) => packagesIn(text)))
  expect([...thirdParty].filter((name) => !named.has(name))).toEqual([])
})

it('the names of our packages are free in the registries, and texts name no other workspace', async () => {
  const names: string[] = []
  for await (const path of glob('packages/*/package.json', { cwd: project }))
    names.push((JSON.parse(await readFile(join(project, path), 'utf8')) as { name: string }).name)
  // Looked up in November 2026: neither PyPI nor the npm registry has them. `berth` is in both.
  expect(names.sort()).toEqual(['@berth/dashboard', '@berth/sdk', '@berth/tools', 'berth-cli'])
  expect(texts.get('packages/python/pyproject.toml')).toMatch(/^name = "berth-sdk"$/m)
  expect(code.flatMap(([, text]) => workspacesIn(text)).filter((name) => !names.includes(name))).toEqual([])
})

it.each([
  ["pip install 'berth[terminal]'", ['berth']],
  ['python3 -m pip install --upgrade berth==1.3', ['berth']],
  ['pip install "berth[langchain] @ https://example.com/berth.whl"', ['berth']],
  ['uv add berth && pipx install berth-cli', ['berth', 'berth-cli']],
  ['npm i -g @berth/sdk@latest berth', ['@berth/sdk', 'berth']],
  ['npx -y berth mcp', ['berth']],
  ['pnpm dlx berth; yarn add "berth"', ['berth', 'berth']],
  ['npm install \\\n  --save-dev \\\n  berth', ['berth']],
  ['{ "command": "npx", "args": ["-y", "berth", "mcp"] }', ['berth']],
  ['raise Missing("pip install websockets") from error', ['websockets']],
])('%j installs %j', (text, names) => {
  expect(packagesIn(text)).toEqual(names)
})

it.each([
  '.venv/bin/pip install "./packages/python[terminal]"',
  'npm install -g ./berth-cli-*.tgz',
  'npm install /PATH/TO/CHECKOUT/berth-sdk-*.tgz',
  'npm install --global "${{ vars.BERTH_CLI }}"',
  'npm install http://127.0.0.1:7070/packages/berth-sdk.tgz',
  'pip install "berth-sdk[langchain] @ http://127.0.0.1:7070/packages/berth_sdk-0.1.0-py3-none-any.whl"',
  '.venv/bin/pip install http://127.0.0.1:7070/packages/berth_sdk-0.1.0-py3-none-any.whl',
  'pip install -r requirements.txt',
  'npm install # then npm start',
  'npm ci && npm run build',
])('%j names no package of a registry', (text) => {
  expect(packagesIn(text)).toEqual([])
})
