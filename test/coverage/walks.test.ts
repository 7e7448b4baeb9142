// The pages that draw the way of a call through the files name existing functions, each with its file.

import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'

const read = async (path: string) => await readFile(new URL(`../../${path}`, import.meta.url), 'utf8')

describe.each(['create', 'exec', 'wake'])('docs/architecture/%s.md', async (name) => {
  const page = await read(`docs/architecture/${name}.md`)
  /** The table of the page: a function and its file. */
  const places = [...page.matchAll(/^\| `(\w+)` \| `(src\/[^`]+)` \|$/gm)].map(
    ([, function_ = '', file = '']) => [function_, file] as const,
  )

  it('has every function of its drawing in its table', () => {
    const [, drawing = ''] = /```mermaid\n(.*?)```/s.exec(page) ?? []
    const drawn = new Set([...drawing.matchAll(/\b(\w+)\(\)/g)].map(([, each]) => each))
    expect(drawn.size).toBeGreaterThan(12)
    expect(drawn).toEqual(new Set(places.map(([each]) => each)))
  })

  it('names functions that are declared in their files', async () => {
    const missing: string[] = []
    for (const [each, file] of places) {
      const isDeclared = new RegExp(
        `^\\s*(?:export )?(?:async )?function ${each}[<(]|^\\s*(?:async )?${each}(?:\\(|: ?(?:async )?\\()`,
        'm',
      )
      if (!isDeclared.test(await read(file))) missing.push(`${each} in ${file}`)
    }
    expect(missing).toEqual([])
  })
})
