// The SDK package as users get it: built, packed, installed in another directory, and small.

import { execFile } from 'node:child_process'
import { access, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openApiDocument } from '../../src/api/openapi.ts'
import { routes } from '../../src/api/routes.ts'
import { Berth } from '../../packages/sdk/src/index.ts'
import { writtenFiles } from '../../scripts/written-files.ts'
import { project, tsc } from '../support/clients.ts'

const run = promisify(execFile)

let directory: string
beforeAll(async () => void (directory = await mkdtemp(join(tmpdir(), 'berth-sdk-package-'))))
afterAll(async () => await rm(directory, { recursive: true }))

it('the generated types of the SDK are up to date; otherwise run npm run gen', async () => {
  const path = 'packages/sdk/src/contract.ts'
  expect(await readFile(join(project, path), 'utf8')).toBe(writtenFiles()[path])
})

it('the SDK package can be installed, imported and type-checked in a fresh directory', {
  timeout: 120_000,
}, async () => {
  const npm = async (args: string[], cwd: string) =>
    await run('npm', [...args, '--no-audit', '--no-fund'], { cwd })
  await npm(['run', 'build'], join(project, 'packages/sdk'))
  await npm(['pack', '--ignore-scripts', '--pack-destination', directory], join(project, 'packages/sdk'))
  const packed = (await readdir(directory)).find((name) => name.endsWith('.tgz')) ?? ''
  const fresh = join(directory, 'fresh')
  await mkdir(fresh)
  await writeFile(join(fresh, 'package.json'), '{ "name": "fresh", "version": "1.0.0", "type": "module" }')
  await npm(['install', '--offline', join(directory, packed)], fresh)
  const installed = JSON.parse(
    await readFile(join(fresh, 'node_modules/@berth/sdk/package.json'), 'utf8'),
  ) as { exports: Record<string, { types: string; default: string }> }
  expect(installed).not.toHaveProperty('dependencies')
  for (const { types, default: code } of Object.values(installed.exports))
    for (const file of [types, code]) await access(join(fresh, 'node_modules/@berth/sdk', file))

  const program = `import { Berth, BerthError, errorCodes, type Contract } from '@berth/sdk'
const berth: Berth = new Berth({ url: 'http://127.0.0.1:9', apiKey: 'k', retries: 0 })
const code: string = await berth.quota().then((quota: Contract.Quota) => String(quota.units.max), (error: BerthError) => error.code)
{
  await using unit = berth.units.of({ state: 'destroyed' } as Contract.Unit)
  const text = async (signal: AbortSignal): Promise<string> => await unit.files.readText('/x', { signal })
  const tar = async (): Promise<ReadableStream<Uint8Array>> => await unit.files.archive('/x')
  console.log(code, errorCodes.length, typeof text, typeof tar)
}
`
  await writeFile(join(fresh, 'program.ts'), program)
  // What is not in the libraries of a program: the types of the SDK need none of it.
  await writeFile(
    join(fresh, 'bare.ts'),
    `${program.replace('AbortSignal', 'any').replace('ReadableStream<Uint8Array>', 'any')}
declare const console: { log: (...words: unknown[]) => void }`,
  )
  const compile = async (file: string, ...options: string[]) =>
    await run(
      tsc,
      ['--strict', '--types', '', '--module', 'nodenext', '--target', 'es2022', ...options, file],
      { cwd: fresh },
    )
  await Promise.all([
    compile('bare.ts', '--noEmit', '--lib', 'es2022'),
    compile('program.ts', '--noEmit', '--lib', 'es2022,dom'),
    compile('program.ts', '--noEmit', '--types', 'node', '--typeRoots', join(project, 'node_modules/@types')),
    // As it is compiled for versions of Node that do not know `await using`.
    compile('program.ts', '--outDir', join(fresh, 'old')),
  ])
  const { stdout } = await run(process.execPath, ['old/program.js'], { cwd: fresh })
  expect(stdout).toMatch(/^connection_failed \d+ function function\n$/)
})

it('the SDK is under 15 kB as one minified and compressed file and imports no runtime module', async () => {
  const bundle = await rolldown({ input: join(project, 'packages/sdk/src/index.ts') })
  const { output } = await bundle.generate({ format: 'esm', minify: true })
  await bundle.close()
  const code = output.map((each) => (each.type === 'chunk' ? each.code : '')).join('')
  expect(code).not.toMatch(/\bimport\b\s*[("'{]|\brequire\(/)
  expect(gzipSync(code).length).toBeLessThan(15_000)
})

/** Operations for people on the web pages with their session, which no program with a key uses. */
const notForKeys = (
  'hostedCreate hostedChange hostedDelete keyCreate keyChange keyRevoke agentChange agentDryRun agentRevoke meRead meChange teamCreate teamChange teamDelete ' +
  'memberList memberChangeRole memberRemove inviteCreate inviteRevoke inviteRead inviteAccept ' +
  'paymentCreate paymentList paymentHear providerList openapiRead'
).split(' ')
/** PUT does the same without base64. */
const doneByAnother = ['unitFileWrite']

/** A WebSocket that reports to be open and is connected to nothing. */
function openingAtOnce(onMade: (url: string) => void): typeof WebSocket {
  class Opening extends EventTarget {
    constructor(url: string) {
      super()
      onMade(url)
      setImmediate(() => this.dispatchEvent(new Event('open')))
    }
  }
  return Opening as unknown as typeof WebSocket
}

it('the SDK has a method for every operation that a key may use', async () => {
  const called = new Set<string>()
  const berth = new Berth({
    url: 'http://berth.test',
    apiKey: 'k',
    WebSocket: openingAtOnce((url) => called.add(`GET ${new URL(url).pathname}`)),
    fetch: async (url, init) => {
      called.add(`${init.method} ${new URL(url).pathname}`)
      return new Response(
        '{"next":null,"state":"x","contentBase64":"","units":[{"id":"u"}],"stacks":[],"keys":[],"recipes":[],"secrets":[],"events":[],"processes":[],"copied":{}}',
      )
    },
  })
  const unit = await berth.units.create('an/image')
  const stack = await berth.stacks.create('s')
  const process = await unit.processes.start(['x'])
  await Promise.all([unit.refresh(), unit.exec(['x']), unit.logPage(), unit.expose(1), unit.fork()])
  await Promise.all([unit.sleep('1m'), unit.stop(), unit.start(), unit.destroy(), unit.processes.list()])
  await Promise.all([unit.metrics(), unit.metricsHistory('month'), berth.units.recentMetrics()])
  await unit.setSecret('K', { value: 'v', hosts: ['h.example'] })
  await unit.tellCalls([{ method: 'fs/readFile' }])
  await Promise.all([
    unit.code.run('1'),
    unit.code.createContext(),
    unit.code.contexts(),
    unit.code.restart('c'),
  ])
  await Promise.all([unit.code.interrupt('c'), unit.code.delete('c')])
  await Promise.all([unit.egress(), unit.setEgress({ mode: 'none' }), unit.checkEgress('example.com')])
  await unit.egressLogPage()
  await Promise.all([unit.files.read('/x'), unit.files.write('/x', ''), unit.files.delete('/x')])
  await Promise.all([
    unit.files.list('/').page(),
    unit.files.archive('/'),
    unit.files.unpack('/', new Uint8Array()),
  ])
  await unit.change({ timeToLive: '1h' })
  await Promise.all([unit.files.readStream('/x'), unit.files.writeStream('/x', new Uint8Array())])
  await Promise.all([unit.files.facts('/x'), unit.files.move('/x', '/y'), unit.files.makeDirectory('/z')])
  for await (const change of unit.files.watch('/x')) void change
  await Promise.all([unit.processes.table(), unit.processes.signalPid(1)])
  await unit.terminal()
  for await (const event of berth.events()) void event
  await Promise.all([process.endInput(), process.keepAwake()])
  await Promise.all([process.refresh(), process.read(), process.signal(), process.delete()])
  await Promise.all([berth.units.list().page(), berth.stacks.list().page(), berth.stacks.get('x')])
  await Promise.all([stack.fork(), stack.destroy(), berth.recipes.list(), berth.recipes.get('x')])
  await Promise.all([berth.agents(), berth.keys(), berth.audit().page(), berth.pricing(), berth.quota()])
  await Promise.all([berth.usage(), berth.support({ topic: 'idea', message: 'x' }), berth.units.summary()])
  await Promise.all([berth.secrets.list(), berth.secrets.put('K', { value: 'v', hosts: ['h.example'] })])
  await berth.secrets.delete('K')
  await Promise.all([berth.hostedAgents.list(), berth.hostedAgents.get('x')])
  const { paths } = openApiDocument(routes) as {
    paths: Record<string, Record<string, { operationId?: string }>>
  }
  const missing = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { operationId = '' }]) => {
      const pattern = new RegExp(`^${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`)
      return [...called].some((each) => pattern.test(each)) ? [] : [operationId]
    }),
  )
  expect(missing.toSorted()).toEqual([...notForKeys, ...doneByAnother].toSorted())
})
