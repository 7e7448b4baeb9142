// `npm start` installs no package that only tests and development need: what it runs, and what its set-up builds with, is
// among the others.

import { existsSync, globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const project = fileURLToPath(new URL('../..', import.meta.url))

/** What `scripts/setup.sh` runs without `test`, and then `npm start`; the operator's other commands; the measurement of a machine. */
const programs = [
  // Its workers are started by name.
  'src/**/*.ts',
  'scripts/build-dashboard.ts',
  'scripts/build-packages.ts',
  'scripts/image.ts',
  'bench/run.ts',
  'bench/idle.ts',
]

const imports =
  /^\s*(?:import|export)(?! type)\b[^'";]*?\bfrom\s+'([^']+)'|\bimport\('([^']+)'\)|^import '([^']+)'/gm

const { packages } = JSON.parse(await readFile(join(project, 'package-lock.json'), 'utf8')) as {
  packages: Record<string, { dev?: boolean; devOptional?: boolean } | undefined>
}

const isForTests = (name: string) => {
  const entry = packages[`node_modules/${name}`]
  return entry === undefined || entry.dev === true || entry.devOptional === true
}

/** Packages that programs import, themselves or by way of other files of the project, with the file. */
async function packagesOf(program: string): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const begins = globSync(program, { cwd: project }).filter((file) => !file.endsWith('.test.ts'))
  const [seen, waiting] = [new Set<string>(), begins.map((file) => join(project, file))]
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (seen.has(file) || !existsSync(file)) continue
    seen.add(file)
    for (const [, ...names] of (await readFile(file, 'utf8')).matchAll(imports)) {
      const name = names.find((each) => each !== undefined) ?? ''
      if (name.startsWith('.')) waiting.push(join(dirname(file), name))
      else if (!name.startsWith('node:'))
        found.set(
          name
            .split('/')
            .slice(0, name.startsWith('@') ? 2 : 1)
            .join('/'),
          relative(project, file),
        )
    }
  }
  expect(seen.size).toBeGreaterThan(1)
  return found
}

it.each(programs)('%s imports no package of tests', async (program) => {
  const found = await packagesOf(program)
  expect([...found].filter(([name]) => isForTests(name))).toEqual([])
})

it('the programs that the set-up runs by name are there too, and those of tests are not', () => {
  expect(['typescript', 'postject', 'vite', `node-linux-${process.arch}`].filter(isForTests)).toEqual([])
  expect(['vitest', 'e2b', 'oxlint', '@biomejs/biome'].filter((name) => !isForTests(name))).toEqual([])
})
