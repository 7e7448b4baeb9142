// The page that draws a visit that wakes its unit names existing functions, each with its file.

import { readFile } from 'node:fs/promises'
import { beforeAll, expect, it } from 'vitest'

const read = async (path: string) => await readFile(new URL(`../../${path}`, import.meta.url), 'utf8')

let page: string
/** The table of the page: a function and its file. */
let places: [name: string, file: string][]

beforeAll(async () => {
  page = await read('docs/architecture/wake.md')
  places = [...page.matchAll(/^\| `(\w+)` \| `(src\/[^`]+)` \|$/gm)].map(([, name = '', file = '']) => [
    name,
    file,
  ])
})

it('every function in the drawing of docs/architecture/wake.md is in its table', () => {
  const [, drawing = ''] = /```mermaid\n(.*?)```/s.exec(page) ?? []
  const drawn = new Set([...drawing.matchAll(/\b(\w+)\(\)/g)].map(([, name]) => name))
  expect(drawn.size).toBeGreaterThan(15)
  expect(drawn).toEqual(new Set(places.map(([name]) => name)))
})

it('every function in the table of docs/architecture/wake.md is declared in its file', async () => {
  const missing: string[] = []
  for (const [name, file] of places) {
    const isDeclared = new RegExp(
      `^\\s*(?:export )?(?:async )?function ${name}[<(]|^\\s*(?:async )?${name}(?:\\(|: ?(?:async )?\\()`,
      'm',
    )
    if (!isDeclared.test(await read(file))) missing.push(`${name} in ${file}`)
  }
  expect(missing).toEqual([])
})
