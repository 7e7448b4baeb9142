// The house rules, for every source file; and that each rule finds the fault it is there for.

import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { glob } from 'node:fs/promises'
import { findFaults } from './support/tidy.ts'
import { bannedWords, vocabularyFaults } from './support/vocabulary.ts'

const project = fileURLToPath(new URL('..', import.meta.url))

async function readSources(): Promise<Map<string, string>> {
  const sources = new Map<string, string>()
  // The rest of `src` are programs that run in units.
  const patterns = ['{src,test,scripts,bench,packages/*/src}/**/*.{ts,tsx}', 'src/**/*.{py,mjs,c}']
  for await (const path of glob(patterns, { cwd: project })) {
    // Written by scripts/gen.ts.
    if (path === 'packages/sdk/src/contract.ts') continue
    sources.set(path, await readFile(`${project}/${path}`, 'utf8'))
  }
  return sources
}

describe('the sources', () => {
  it('keep every house rule', async () => {
    const sources = await readSources()
    expect(sources.size).toBeGreaterThan(100)
    expect(findFaults(sources)).toEqual([])
  })
})

describe('the vocabulary check', () => {
  it('accepts the words of the documentation', async () => {
    const faults: string[] = []
    for await (const path of glob('{docs/**/*.md,*.md}', { cwd: project })) {
      faults.push(...vocabularyFaults(path, await readFile(`${project}/${path}`, 'utf8')))
    }
    expect(faults).toEqual([])
  })

  it.each([
    ['an identifier', 'const done = await getSettledUnit(app, id)\n'],
    ['a comment', '// A unit in a passing state.\n'],
    ['a metric', "const name = 'berth_way_seconds'\n"],
    ['a log line', "log.warn({ err }, 'a unit could not be driven on')\n"],
    ['a constant', 'const MOST_BYTES = 1\n'],
  ])('refuses a home-grown word in %s', (_what, text) => {
    expect(faultsOf({ 'src/lib/a.ts': text })).toEqual([expect.stringContaining('a word of our own')])
  })

  it.each([
    ['src/lib/a.ts', '// Returns what whoever asked may see.\n', 'says "whoever"'],
    ['src/lib/a.ts', '// The caller gets his answer.\n', 'says "his"'],
    ['test/api/a.test.ts', '// As the person who wrote it, whoever that is.\n', 'says "whoever"'],
    ['src/lib/a.ts', '/** Null: somebody else has it. */\n', 'says "somebody"'],
    ['src/domain/units/a.ts', '  // The run begins anew.\n', 'says "anew"'],
    ['docs/decisions/processes.md', 'Nobody reads it.\n', 'says "Nobody"'],
    ['docs/decisions/processes.md', 'As whoever wrote it said.\n', 'says "whoever"'],
  ])('refuses a word in %s that hides the subject: %j', (path, text, fault) => {
    expect(faultsOf({ [path]: text })).toEqual([expect.stringContaining(fault)])
  })

  it.each(['docs/spec.md', 'src/store/migrations/0001-a.ts'])('allows such a word in %s', (path) => {
    expect(faultsOf({ [path]: '// As whoever wrote it said.\n' })).not.toContainEqual(
      expect.stringContaining('says'),
    )
  })

  it('has a replacement for every word it refuses', () => {
    expect(bannedWords.filter(({ instead }) => instead === '')).toEqual([])
  })
})

/** The faults of made-up files. */
const faultsOf = (files: Record<string, string>) => findFaults(new Map(Object.entries(files)))

describe('the house rules find', () => {
  it.each([
    ['a layer that imports a higher one', 'src/contract/a.ts', '../store/b.ts'],
    ['an API file that imports the store', 'src/api/a.ts', '../store/b.ts'],
    ['a domain file that imports the inside of the engine', 'src/domain/units/a.ts', '../../engine/oci/b.ts'],
    [
      'a domain file that imports the engine’s socket',
      'src/domain/units/a.ts',
      '../../engine/socket-client.ts',
    ],
    ['a domain folder that imports a later one', 'src/domain/audit/a.ts', '../units/b.ts'],
    ['an engine folder that imports one above it', 'src/engine/oci/kernel/a.ts', '../lifecycle/b.ts'],
    ['a folder without a layer', 'src/helpers/a.ts', '../lib/b.ts'],
    ['a dashboard file that imports the store', 'packages/dashboard/src/a.tsx', '../../../src/store/b.ts'],
    ['a source that imports a test', 'src/lib/a.ts', '../../test/support/b.ts'],
  ])('%s', (_what, path, target) => {
    expect(faultsOf({ [path]: `import { b } from '${target}'\n` })).toHaveLength(1)
    expect(faultsOf({ [path]: `const b = await import('${target}')\n` })).toHaveLength(1)
  })

  it('an import cycle of any length', () => {
    const files = {
      'src/store/a.ts': "import './b.ts'\n",
      'src/store/b.ts': "import {\n  type C,\n  c,\n} from './c.ts'\n",
      'src/store/c.ts': "import { a } from './a.ts'\n",
    }
    expect(faultsOf(files)).toEqual([expect.stringContaining('imports itself by way of')])
  })

  it('an import cycle closed by types', () => {
    const files = {
      'src/store/db.ts': "import type { Units } from './units.ts'\n",
      'src/store/units.ts': "import type { Db } from './db.ts'\n",
    }
    expect(faultsOf(files)).toEqual([expect.stringContaining('imports itself by way of')])
  })

  it.each([
    ['a file that reads the environment', 'const home = process.env.HOME\n'],
    ['a default export', 'export default 1\n'],
    ['a TODO comment', '// TODO: the rest\n'],
    ['a call of console.log', "console.log('here')\n"],
    ['a call of a shell', "execSync('rm -rf /')\n"],
    ['a file that is too long', 'const a = 1\n'.repeat(301)],
  ])('%s', (_what, text) => {
    expect(faultsOf({ 'src/lib/a.ts': text })).toHaveLength(1)
  })

  it.each([
    ['a path joined to a root', "const etc = join(paths.rootfs, 'etc')\n"],
    ['a path written below an upper layer', 'const etc = `${disk.upper}/etc`\n'],
    ['a path in a volume', "const file = resolve(\n  volumeDir,\n  'file',\n)\n"],
    ['a file opened in a tree', 'const fd = openInRoot(rootFd, path, flags)\n'],
    ['a jail', "await run('bwrap', ['--bind', rootfs, '/'], options)\n"],
    ['a program that unpacks into a tree', "await run('tar', ['-x', '-C', rootfs], options)\n"],
  ])('%s outside the one module for it', (_what, text) => {
    expect(faultsOf({ 'src/engine/oci/a.ts': text })).toHaveLength(1)
  })

  it('a transaction that the domain begins itself', () => {
    const text = 'await app.db.transaction().execute(async (db) => {})\n'
    expect(faultsOf({ 'src/domain/units/a.ts': text })).toHaveLength(1)
  })

  it('an operation that counts its attempts itself', () => {
    const text = 'for (let attempt = 0; attempt < 5; attempt++) await stop(unit)\n'
    expect(faultsOf({ 'src/domain/units/a.ts': text })).toHaveLength(1)
  })

  it('no fault in the one module that may do it', () => {
    const files = {
      'src/domain/transactions/transactions.ts': 'await db.transaction().execute(work)\n',
      'src/engine/oci/kernel/unit-tree.ts': 'const fd = openInRoot(rootFd, `${rootfs}/etc`, flags)\n',
      'src/engine/oci/images/jail.ts': "const command = ['bwrap', '--bind', rootfs]\n",
      'src/engine/oci/images/jailed/a.ts': "const umoci = spawn('umoci', ['raw', 'unpack', `${rootfs}/a`])\n",
      'src/engine/oci/a.ts': "const rootfs = join(made, 'rootfs')\nconst image = dirname(rootfs)\n",
    }
    expect(faultsOf(files)).toEqual([])
  })

  it.each([
    ['a test that is named as a wish', "  it('should refuse a wrong key', () => {})\n"],
    ['a test that is named as a thing', "it('refusal', () => {})\n"],
    ['a test that does not name its subject', "it('wakes nobody', () => {})\n"],
    ['a test that runs alone', "it.only('a wrong key is refused', () => {})\n"],
  ])('%s', (_what, text) => {
    expect(faultsOf({ 'src/lib/a.test.ts': text })).toHaveLength(1)
  })

  it('no fault in files without one', () => {
    const files = {
      'src/config.ts': 'export const home = process.env.HOME\n',
      'src/domain/units/a.ts': "import { E } from '../../engine/errors.ts'\nimport '../audit/b.ts'\n",
      'src/store/schema.ts': "import type { Units } from './tables/units.ts'\n",
      'src/store/units.ts':
        "import type { Units } from './tables/units.ts'\nimport { db } from './schema.ts'\n",
      'src/lib/a.test.ts': "it('a wrong key is refused', () => {})\n",
    }
    expect(faultsOf(files)).toEqual([])
  })
})
