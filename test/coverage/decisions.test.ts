// Each decision of docs/decisions is one short page that says what holds now, and the index lists them all.

import { glob, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, it } from 'vitest'

const folder = fileURLToPath(new URL('../../docs/decisions', import.meta.url))

/** File name → text. */
const pages = new Map<string, string>()
let index = ''

beforeAll(async () => {
  for await (const name of glob('*.md', { cwd: folder }))
    pages.set(basename(name), await readFile(join(folder, name), 'utf8'))
  index = pages.get('README.md') ?? ''
  pages.delete('README.md')
})

/** The title of a decision and what it says in one line, or null when it has no such head. */
function headOf(text: string): { title: string; line: string } | null {
  const [, title, line] = /^# ([A-Z].*)\n\n([A-Z][^#]*?\.)\n\n## What holds/.exec(text) ?? []
  return title === undefined || line === undefined ? null : { title, line: line.replaceAll('\n', ' ') }
}

it('there are at most forty decisions, each named after its subject', () => {
  expect(pages.size).toBeGreaterThan(20)
  expect(pages.size).toBeLessThanOrEqual(40)
  expect([...pages.keys()].filter((name) => !/^[a-z0-9]+(?:-[a-z]+)*\.md$/.test(name))).toEqual([])
})

it('each decision begins with its title, one line, and what holds', () => {
  expect([...pages].filter(([, text]) => headOf(text) === null).map(([name]) => name)).toEqual([])
})

it('each decision has at most 45 lines of text, of at most 140 characters', () => {
  const long = [...pages].flatMap(([name, text]) => {
    const lines = text.split('\n').filter((line) => line !== '')
    const wide = lines.filter((line) => line.length > 140).map((line) => `${name}: ${line}`)
    return lines.length > 45 ? [`${name}: ${lines.length} lines`, ...wide] : wide
  })
  expect(long).toEqual([])
})

it('the index lists every decision with its title and its line', () => {
  const rows = index.matchAll(/^\| \[(.*)\]\((\S+)\) \| (.*) \|$/gm)
  const listed = [...rows].map(([, title, name, line]) => `${name}: ${title}: ${line}`)
  const there = [...pages].map(([name, text]) => {
    const head = headOf(text)
    return `${name}: ${head?.title}: ${head?.line}`
  })
  expect(listed.toSorted((a, b) => a.localeCompare(b))).toEqual(there.toSorted((a, b) => a.localeCompare(b)))
})
