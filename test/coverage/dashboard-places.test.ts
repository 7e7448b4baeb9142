// Pages, help and messages that send a person somewhere in the dashboard name a place that is there.

import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { project } from '../support/clients.ts'

const texts = new Map<string, string>()
for await (const path of glob(
  [
    '{README.md,docs/*.md,docs/{concepts,guides}/*.md,examples/**/*.md}',
    'src/{contract,domain,api/operation-docs,api/routes,api/mcp}/**/*.ts',
    'packages/{cli,sdk}/src/**/*.ts',
    'packages/python/src/**/*.py',
  ],
  { cwd: project },
))
  texts.set(path, await readFile(join(project, path), 'utf8'))

const found = (pattern: RegExp) =>
  [...texts].flatMap(([path, text]) =>
    [...text.matchAll(pattern)].map(([all, name]) => ({ path, all, name })),
  )

it('pages and help send people for keys to Agents in the dashboard, and nowhere else', () => {
  expect(found(/\bon the (?:account page|pages of the service)\b/gi)).toEqual([])
  expect(found(/\*\*Agents\*\*\s+in\s+the\s+dashboard/g).length).toBeGreaterThan(4)
})

it('pages and help name only places that the navigation of the dashboard has', async () => {
  const nav = await readFile(join(project, 'packages/dashboard/src/shell/nav.ts'), 'utf8')
  const labels = [...nav.matchAll(/label: '([^']+)'/g)].map(([, label]) => label)
  expect(labels).toContain('Agents')
  const named = found(/(?:\*\*|\bunder )([A-Z]\w+)(?:\*\*)?\s+in\s+the\s+dashboard/g)
  expect(named.length).toBeGreaterThan(8)
  expect(named.filter(({ name = '' }) => !labels.includes(name))).toEqual([])
})
