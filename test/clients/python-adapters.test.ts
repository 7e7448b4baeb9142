// The adapters of the Python library for agent frameworks, as far as they can be checked without the frameworks.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import { expect, it } from 'vitest'
import { project } from '../support/clients.ts'
import { pythonPackage, runPython } from '../support/python.ts'

const readText = async (path: string) => await readFile(join(project, path), 'utf8')

type Row = { extra: string; range: string; package: string; tested: string }

/** Of the table's rows for the Python library. The first package of a row is that of its range. */
async function rowsOfTable(): Promise<Row[]> {
  const page = await readText('docs/guides/frameworks.md')
  const row = /^\|[^|]*\| `berth-sdk\[([\w-]+)\]`[^|]*\|[^|]*\| `([^`]+)` \| `([^`]+)` ([\w.]+)[^|]*\|$/gm
  return [...page.matchAll(row)].map(([, extra = '', range = '', of = '', tested = '']) => ({
    extra,
    range,
    package: of,
    tested,
  }))
}

it('the table of frameworks has each extra of the Python library, with its range and its tested version', async () => {
  const { project: described } = parse(await readText('packages/python/pyproject.toml')) as unknown as {
    project: { 'optional-dependencies': Record<string, string[]> }
  }
  const { httpx: _, terminal: __, ...extras } = described['optional-dependencies']
  const rows = await rowsOfTable()
  expect(rows.map(({ extra }) => extra).toSorted()).toEqual(Object.keys(extras).toSorted())
  for (const row of rows) {
    const requirements = await readText(`test/frameworks/requirements/${row.extra}.txt`)
    expect(requirements.match(new RegExp(`^${row.package}==([\\w.]+)`, 'm'))?.[1]).toBe(row.tested)
    expect(extras[row.extra]?.[0]?.replace(/^[\w.-]+(\[.*\])?/, '')).toBe(row.range)
    await readText(`packages/python/src/berth/adapters/${row.extra.replaceAll('-', '_')}.py`)
  }
})

it('no adapter of the Python library is loaded by the library itself', async () => {
  const program =
    'import sys, berth; print([name for name in sys.modules if name.startswith("berth.adapters")])'
  expect(await runPython(['-c', program], { cwd: pythonPackage })).toBe('[]\n')
})
