// The settings that docs/mcp.md tells people to copy: each can be parsed, names the endpoint, and has the key where
// the program reads it.

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const page = await readFile(new URL('../../docs/mcp.md', import.meta.url), 'utf8')
const snippets = [...page.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, language = '', text = '']) => ({
  language,
  text,
}))
const of = (language: string) => snippets.filter((snippet) => snippet.language === language)

test('every snippet is in a language that a test here parses', () => {
  expect([...new Set(snippets.map(({ language }) => language))].sort()).toEqual([
    'json',
    'python',
    'sh',
    'toml',
    'ts',
  ])
})

test.each(of('json'))('JSON settings name the endpoint and the key: $text', ({ text }) => {
  const [servers] = Object.entries(JSON.parse(text) as Record<string, Record<string, object>>)
    .filter(([name]) => /servers/i.test(name))
    .map(([, value]) => value)
  const told = JSON.stringify(servers?.['berth'])
  expect(told).toContain('BASE/mcp')
  expect(told).toMatch(/Bearer (?:KEY|\$\{input:berth-key\})/)
})

test.each(of('sh'))('a command line is valid shell: $text', async ({ text }) => {
  await promisify(execFile)('sh', ['-n', '-c', text])
  expect(text).toContain('BASE/mcp')
})

test('snippets in TypeScript, Python and TOML name the endpoint, and Python and TOML can be parsed', async () => {
  for (const { text } of [...of('ts'), ...of('python'), ...of('toml')]) expect(text).toContain('BASE/mcp')
  for (const { text } of of('python')) {
    const parse = 'import ast, sys; ast.parse(sys.argv[1])'
    await promisify(execFile)('python3', ['-c', parse, text])
  }
  for (const { text } of of('toml')) {
    const parse =
      'import sys, tomllib; assert tomllib.loads(sys.argv[1])["mcp_servers"]["berth"]["url"] == "BASE/mcp"'
    await promisify(execFile)('python3', ['-c', parse, text])
  }
})
