// The guide's table of methods against the official library itself, and against the tests.

import { glob, readFile } from 'node:fs/promises'
import { Git, Sandbox, Secret, TemplateBase, Volume } from 'e2b'
import { expect, it } from 'vitest'

type Row = { methods: string[]; state: string }

/** Of the library's own use, by its types. */
const internal = new Set(
  (
    'createSandbox forkSandbox connectSandbox resolveOpts resolveApiOpts fileUrl start ' +
    'runGit runShell getRemoteUrl resolveRemoteName withRemoteCredentials hasUpstream'
  ).split(' '),
)
/** Other names of `pause` and `getInfo`, and what the library does alone. */
const others = new Set(['betaPause', 'getFullInfo', 'toJSON', 'toDockerfile', 'fill', 'iamToken'])

/** Without a connection: nothing is called. */
const options: unknown = { sandboxId: 'none', envdVersion: '1.0.0', apiKey: 'none' }
const sandbox = Reflect.construct(Sandbox, [options]) as Sandbox

function methodsOf(name: string, owner: object): string[] {
  const found = Object.entries(Object.getOwnPropertyDescriptors(owner))
    .filter(([each, { value }]) => typeof value === 'function' && each !== 'constructor')
    .map(([each]) => each)
  return found.filter((each) => !internal.has(each) && !others.has(each)).map((each) => `${name}.${each}`)
}

function methodsOfLibrary(): string[] {
  return [
    ...methodsOf('Sandbox', Sandbox),
    ...methodsOf('Sandbox', Object.getPrototypeOf(Sandbox) as object),
    ...methodsOf('sandbox', Sandbox.prototype),
    ...methodsOf('commands', Object.getPrototypeOf(sandbox.commands) as object),
    ...methodsOf('files', Object.getPrototypeOf(sandbox.files) as object),
    ...methodsOf('pty', Object.getPrototypeOf(sandbox.pty) as object),
    ...methodsOf('git', Git.prototype),
    ...methodsOf('Template', TemplateBase),
    ...methodsOf('Secret', Secret),
    ...methodsOf('Volume', Volume),
    ...methodsOf('volume', Volume.prototype),
  ]
}

async function readTable(): Promise<Row[]> {
  const guide = await readFile(new URL('../../docs/guides/e2b.md', import.meta.url), 'utf8')
  const [, table = ''] = guide.split('| method | state |')
  const rows = table.split('\n').filter((line) => line.startsWith('| ') && line.includes('`'))
  return rows.map((line) => {
    const [, methods = '', state = ''] = line.split(' | ').length === 2 ? [null, ...line.split(' | ')] : []
    return { methods: [...methods.matchAll(/`([\w.]+)`/g)].map(([, name]) => name ?? ''), state }
  })
}

async function readTests(): Promise<string> {
  const project = new URL('../..', import.meta.url)
  let text = ''
  for await (const path of glob('test/{flows/e2b-*.test.ts,support/e2b*.ts}', { cwd: project.pathname }))
    text += await readFile(new URL(path, project), 'utf8')
  return text
}

it('the guide names every method of the official library, once, and no other', async () => {
  const named = (await readTable()).flatMap(({ methods }) => methods).filter((name) => name.includes('.'))
  expect(named.toSorted()).toEqual(methodsOfLibrary().toSorted())
})

it('a test calls each method that the guide says works', async () => {
  const tests = await readTests()
  const rows = await readTable()
  const untried = rows
    .filter(({ state }) => !state.startsWith('not yet'))
    .flatMap(({ methods }) => methods)
    .filter((name) => !new RegExp(`\\.${name.split('.')[1] ?? name}\\(`).test(tests))
  expect(rows.length).toBeGreaterThan(20)
  expect(untried).toEqual([])
})
