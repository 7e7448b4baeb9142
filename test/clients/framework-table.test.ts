// The table of agent frameworks in the documentation, the packages of the SDK and the versions that are tested are the same.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { project } from '../support/clients.ts'

type Manifest = {
  exports: Record<string, unknown>
  dependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  /** A field of our own: npm would ask its registry for each peer, also for optional ones, and a Berth may have none. */
  frameworks: Record<string, string>
  peerDependenciesMeta: Record<string, { optional: boolean }>
}

const readText = async (path: string) => await readFile(join(project, path), 'utf8')
const manifest = async (path: string) => JSON.parse(await readText(`${path}/package.json`)) as Manifest

/** Of rows with an import of the SDK: its name, the package, its range and the version that is tested. */
async function rowsOfTable(): Promise<{ name: string; of: string; range: string; tested: string }[]> {
  const page = await readText('docs/guides/frameworks.md')
  const row = /^\|.*`@berth\/sdk\/([\w-]+)`.*\| `([^`]+)` \| `([^`]+)` (\S+) \|$/gm
  return [...page.matchAll(row)].map(([, name = '', range = '', of = '', tested = '']) => ({
    name,
    of,
    range,
    tested,
  }))
}

it('the table of frameworks has each adapter of the TypeScript SDK, with its range and its tested version', async () => {
  const [sdk, tested, rows] = await Promise.all([
    manifest('packages/sdk'),
    manifest('test/frameworks/npm'),
    rowsOfTable(),
  ])
  const adapters = Object.keys(sdk.exports).filter((path) => path !== '.')
  expect(rows.map(({ name }) => `./${name}`).toSorted()).toEqual(adapters.toSorted())
  for (const row of rows) {
    expect(row.range).toBe(sdk.frameworks[row.of])
    expect(row.tested).toBe(tested.dependencies?.[row.of])
  }
})

it('every framework of the TypeScript SDK is an optional peer, which npm does not look up', async () => {
  const { dependencies, peerDependencies, frameworks, peerDependenciesMeta } = await manifest('packages/sdk')
  expect([dependencies, peerDependencies]).toEqual([undefined, undefined])
  expect(Object.keys(frameworks)).toEqual(Object.keys(peerDependenciesMeta))
  expect(Object.values(peerDependenciesMeta).every(({ optional }) => optional)).toBe(true)
})
