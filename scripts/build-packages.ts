// Builds what a Berth gives to its users, into dist/packages: the CLI as a package and as one executable for the
// system and processor of this machine, the TypeScript SDK, the wheel of the Python library, and manifest.json with
// their digests. Does nothing where the sources are as at the last time; a build that fails leaves the last one.
// Usage: node scripts/build-packages.ts [--out DIRECTORY] [--without-executable] [--without-code-cache]
//        [--wheel DIRECTORY]

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, copyFile, cp, glob, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { freemem, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { constants, gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import cliBuild from '../packages/cli/rolldown.config.ts'
import { writeWheel } from './python-wheel.ts'

const run = promisify(execFile)
const project = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '')

const { values: options } = parseArgs({
  options: {
    out: { type: 'string', default: join(project, 'dist/packages') },
    'without-executable': { type: 'boolean', default: false },
    // V8's is not the same bytes twice.
    'without-code-cache': { type: 'boolean', default: false },
    wheel: { type: 'string' },
  },
})

/** What putting the program into a copy of Node takes at its peak. */
const EXECUTABLE_NEEDS_BYTES = 1.3e9

/** The same bytes from the same sources, wherever they are: npm writes this time too. */
const tarArgs = [
  '--format=ustar',
  '--sort=name',
  '--mtime=1985-10-26T08:15:00Z',
  '--owner=0',
  '--group=0',
  '--numeric-owner',
  '--mode=u=rwX,go=rX',
]

if (options.wheel === undefined) await buildAll(options.out)
else console.log(await writeWheel(join(project, 'packages/python'), options.wheel))

async function buildAll(out: string): Promise<void> {
  const stamp = await stampOfSources()
  if ((await stampIn(out)) === stamp) return
  const { version } = await readJson<{ version: string }>('package.json')
  const fresh = `${out}-${process.pid}`
  const work = await mkdtemp(join(tmpdir(), 'berth-packages-'))
  try {
    await mkdir(fresh, { recursive: true })
    await packNpm('sdk', work, join(fresh, 'berth-sdk.tgz'), buildSdk)
    await packNpm('cli', work, join(fresh, 'berth-cli.tgz'), buildCli)
    const wheel = basename(await writeWheel(join(project, 'packages/python'), fresh))
    const executable = options['without-executable'] ? null : await packExecutable(work, fresh).catch(leftOut)
    const names = ['berth-sdk.tgz', 'berth-cli.tgz', wheel, ...(executable === null ? [] : [executable])]
    const files = names.map(async (name) => [name, await factsOf(join(fresh, name))] as const)
    const manifest = {
      stamp,
      version,
      wheel,
      executable,
      files: Object.fromEntries(await Promise.all(files)),
    }
    await writeFile(join(fresh, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`)
    await putInPlace(fresh, out, stamp)
  } finally {
    await rm(fresh, { recursive: true, force: true })
    await rm(work, { recursive: true, force: true })
  }
}

/** As `npm pack` does: the files that package.json lists, below package/. */
async function packNpm(
  name: string,
  work: string,
  file: string,
  build: (directory: string) => Promise<void>,
): Promise<void> {
  const source = join(project, 'packages', name)
  const stage = join(work, name, 'package')
  await mkdir(stage, { recursive: true })
  await build(join(stage, 'dist'))
  for (const each of ['package.json', 'README.md', 'LICENSE']) await cp(join(source, each), join(stage, each))
  await run('tar', ['-C', join(work, name), ...tarArgs, '-cf', join(work, `${name}.tar`), 'package'])
  await writeFile(file, gzipSync(await readFile(join(work, `${name}.tar`)), { level: 9 }))
}

async function buildSdk(directory: string): Promise<void> {
  const config = join(project, 'packages/sdk/tsconfig.json')
  // The adapters name the types of frameworks, which are there for tests alone. Tests check the types too.
  await run(join(project, 'node_modules/.bin/tsc'), ['-p', config, '--noCheck', '--outDir', directory])
}

async function buildCli(directory: string): Promise<void> {
  const { output, ...input } = cliBuild
  const bundle = await rolldown(input)
  await bundle.write({ ...[output].flat()[0], dir: directory })
  await bundle.close()
}

/**
 * The CLI in a copy of the Node that runs this (Node's single executable applications), compressed. Returns its name,
 * or null where it cannot be made: then people install the package.
 */
async function packExecutable(work: string, fresh: string): Promise<string | null> {
  if (process.platform !== 'linux') return null
  if (freemem() < EXECUTABLE_NEEDS_BYTES) {
    console.error('The CLI as one executable needs 1.3 GB of free memory to be made: it is left out.')
    return null
  }
  const [script, config, blob, program] = ['cli.cjs', 'sea.json', 'sea.blob', 'berth'].map((name) =>
    join(work, name),
  ) as [string, string, string, string]
  const { output: _output, ...input } = cliBuild
  const bundle = await rolldown(input)
  await bundle.write({ file: script, format: 'cjs', codeSplitting: false, minify: true })
  await bundle.close()
  await writeFile(
    config,
    JSON.stringify({
      // It stands in the program: the same wherever this is built.
      main: basename(script),
      output: blob,
      disableExperimentalSEAWarning: true,
      useCodeCache: !options['without-code-cache'],
      // A certificate authority of one's own is trusted once the system trusts it.
      execArgv: ['--use-system-ca'],
    }),
  )
  await run(process.execPath, ['--experimental-sea-config', config], { cwd: work })
  await copyFile(process.execPath, program)
  await inject(program, await readFile(blob))
  await chmod(program, 0o755)
  await run(program, ['--version'])
  const name = `berth-${process.platform}-${process.arch}.gz`
  await writeFile(join(fresh, name), gzipSync(await readFile(program), { level: constants.Z_DEFAULT_LEVEL }))
  return name
}

/** Everything else is served all the same. */
function leftOut(error: unknown): null {
  console.error(`The CLI as one executable could not be made and is left out: ${String(error)}`)
  return null
}

async function inject(program: string, blob: Buffer): Promise<void> {
  const library: string = 'postject'
  const { inject: into } = (await import(library)) as {
    inject: (file: string, name: string, data: Buffer, options: object) => Promise<void>
  }
  // It warns of notes in Node's own file, on standard output, which may be read by a program.
  const { log, warn } = console
  Object.assign(console, { log: () => {}, warn: () => {} })
  try {
    await into(program, 'NODE_SEA_BLOB', blob, {
      sentinelFuse: 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2',
    })
  } finally {
    Object.assign(console, { log, warn })
  }
}

async function factsOf(path: string): Promise<{ bytes: number; sha256: string }> {
  const content = await readFile(path)
  return { bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') }
}

/** Another build of the same sources may come first, at any moment. */
async function putInPlace(fresh: string, out: string, stamp: string): Promise<void> {
  const old = `${fresh}-old`
  while ((await stampIn(out)) !== stamp) {
    await rename(out, old).catch(() => {})
    await rename(fresh, out).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
    })
    await rm(old, { recursive: true, force: true })
  }
}

async function stampIn(out: string): Promise<string> {
  try {
    return (JSON.parse(await readFile(join(out, 'manifest.json'), 'utf8')) as { stamp: string }).stamp
  } catch {
    return ''
  }
}

async function stampOfSources(): Promise<string> {
  const paths = ['package.json', 'package-lock.json', 'scripts/build-packages.ts', 'scripts/python-wheel.ts']
  const sources = [
    'packages/{cli,sdk,python}/*.*',
    'packages/{agents,cli,sdk}/src/**/*.ts',
    'src/{contract/audit-sentences,lib/money,lib/byte-size}.ts',
  ]
  for await (const path of glob([...sources, 'packages/python/src/**/*.{py,typed}'], { cwd: project }))
    paths.push(path)
  const hash = createHash('sha256').update(`${process.version} ${process.platform} ${process.arch}`)
  hash.update(String([options['without-executable'], options['without-code-cache']]))
  for (const path of paths.sort()) hash.update(path).update(await readFile(join(project, path)))
  return hash.digest('hex').slice(0, 16)
}

async function readJson<T>(path: string): Promise<T> {
  return JSON.parse(await readFile(join(project, path), 'utf8')) as T
}
