// What the sources and pages cite exists: sections of the specification and the design, numbered guarantees,
// decisions, and the files that pages name or link to.

import { access, glob, readFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, it } from 'vitest'

const project = fileURLToPath(new URL('../..', import.meta.url))

/** Path from the project’s root → text. */
const files = new Map<string, string>()

beforeAll(async () => {
  for await (const path of glob(['{src,test,scripts,bench}/**/*.ts', 'docs/**/*.md', '*.md'], {
    cwd: project,
  }))
    files.set(path, await readFile(join(project, path), 'utf8'))
  for await (const path of glob('{src,test,scripts,bench,packages/*/src,deploy}/**/*', { cwd: project }))
    known.add(path)
})

/** Every path below the folders of code, as pages and comments name them. */
const known = new Set<string>()

const textOf = (path: string) => files.get(path) ?? ''

/** Every "spec 2.3, 4.1" or "reliability I3 and I4" of a file, split into single citations. */
function citations(text: string, page: string, item: string): string[] {
  const list = new RegExp(`\\b${page} (${item}(?:(?:, | and | to )${item})*)\\b`, 'g')
  return [...text.matchAll(list)].flatMap(([, items = '']) => items.match(new RegExp(item, 'g')) ?? [])
}

function citedBut(page: string, item: string, known: Set<string>): string[] {
  return [...files].flatMap(([path, text]) =>
    citations(text, page, item)
      .filter((cited) => !known.has(cited))
      .map((cited) => `${path}: ${page} ${cited}`),
  )
}

/** Numbers of the headings. A numbered item of a list counts as part of its section: "5.3". */
function sectionsOf(path: string): Set<string> {
  const sections = new Set<string>()
  let section = ''
  for (const line of textOf(path).split('\n')) {
    const heading = /^#+ (\d+(?:\.\d+)?)[. ]/.exec(line)?.[1]
    const item = /^(\d+)\. /.exec(line)?.[1]
    if (heading !== undefined) sections.add((section = heading))
    else if (item !== undefined) sections.add(`${section}.${item}`)
  }
  return sections
}

it('sources and pages cite only existing sections of the specification and the design', () => {
  for (const page of ['spec', 'design']) {
    const sections = sectionsOf(`docs/${page}.md`)
    expect(sections.size).toBeGreaterThan(5)
    expect(citedBut(page, '\\d+(?:\\.\\d+)?', sections)).toEqual([])
  }
})

/** Number of a guarantee → the files that its line names. */
function guarantees(): Map<string, string[]> {
  const lines = textOf('docs/guarantees.md').matchAll(/^- \*\*([A-Z]\d+) .*\n {2}Tests: (.*)$/gm)
  return new Map(
    [...lines].map(([, number = '', tests = '']) => [
      number,
      [...tests.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file),
    ]),
  )
}

it('sources and pages cite only existing guarantees', () => {
  const known = new Set(guarantees().keys())
  expect(known.size).toBeGreaterThan(100)
  expect(citedBut('reliability', '[A-Z]\\d+', known)).toEqual([])
})

it('each file that a guarantee names cites that guarantee', () => {
  const wrong = [...guarantees()].flatMap(([number, named]) =>
    named
      .filter((file) => !new RegExp(`\\b${number}\\b`).test(textOf(file)))
      .map((file) => `${number}: ${file}`),
  )
  expect(wrong).toEqual([])
})

it('sources and pages cite only existing decisions, by the names of their pages', () => {
  const wrong = [...files].flatMap(([path, text]) => {
    const cited = [...text.matchAll(/\bdecisions\/[\w-]+/g)].map(([name]) => name)
    const missing = cited.filter((name) => !files.has(`docs/${name}.md`))
    // Changes were written down when decisions had numbers, and are not written again.
    const numbered = path === 'CHANGELOG.md' ? [] : (text.match(/\bdecisions?\s+0*\d+/gi) ?? [])
    return [...missing, ...numbered].map((name) => `${path}: ${name}`)
  })
  expect(wrong).toEqual([])
})

/** File names in backticks of a page, or in the comments of a source. */
function namedFiles(path: string, text: string): string[] {
  const file = /(?<![\w.$`/-])(?:[\w-]+\/)*[\w-]+\.(?:ts|tsx|sql)\b/g
  if (path.endsWith('.md')) {
    const prose = text.replaceAll(/```[^]*?```/g, '')
    return [...prose.matchAll(/`([^`\n]+)`/g)].flatMap(([, code = '']) => code.match(file) ?? [])
  }
  const comments = text.split('\n').filter((line) => /^\s*(?:\/\/|\/?\*)/.test(line))
  return comments.flatMap((line) => line.match(file) ?? [])
}

it('pages and comments name only existing source files', () => {
  const names = new Set(
    [...known].flatMap((path) => path.split('/').map((_, at, all) => all.slice(at).join('/'))),
  )
  expect(names.size).toBeGreaterThan(1000)
  const missing = [...files].flatMap(([path, text]) =>
    namedFiles(path, text)
      .filter((name) => !names.has(name))
      .map((name) => `${path}: ${name}`),
  )
  expect(missing).toEqual([])
})

it('pages link only to existing files', async () => {
  // Pages below /docs/ are written by a running Berth: test/api/docs.test.ts follows those.
  const links = [...files]
    .filter(([path]) => path.endsWith('.md'))
    .flatMap(([path, text]) =>
      [...text.matchAll(/\]\((?!https?:|mailto:|#|\/docs\/)([^)#\s]+)[^)]*\)/g)].map(([, target = '']) => ({
        path,
        target: normalize(join(dirname(path), target)),
      })),
    )
  expect(links.length).toBeGreaterThan(10)
  const broken = await Promise.all(
    links.map(async ({ path, target }) => {
      const isThere = await access(join(project, target)).then(
        () => true,
        () => false,
      )
      return isThere ? null : `${path}: ${target}`
    }),
  )
  expect(broken.filter((each) => each !== null)).toEqual([])
})

it('CONTRIBUTING.md says what each folder of src is', () => {
  const text = textOf('CONTRIBUTING.md')
  const folders = new Set([...known].flatMap((path) => /^src\/[^/]+\/(?=.)/.exec(path) ?? []))
  expect(folders.size).toBeGreaterThan(10)
  expect([...folders].filter((folder) => !text.includes(`\`${folder}\``))).toEqual([])
})
