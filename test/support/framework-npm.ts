// The npm packages of agent frameworks at their newest tested versions, with the SDK of this checkout installed beside them.
// The packages are kept between runs, outside the tree; each test file gets a directory of its own that links to them.

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFile,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll } from 'vitest'
import { installSdk, project, tsc } from './clients.ts'

const execute = promisify(execFile)
const packages = join(project, 'test/frameworks/npm')

export type FrameworkProject = {
  /** Its node_modules have the frameworks and the SDK. */
  directory: string
  /** Puts files of the repository beside the program. */
  copy(...files: string[]): Promise<void>
  /**
   * Type-checks a program with the frameworks' own types, and runs it.
   *
   * @param program From the root of the repository. It is copied, and imports others by `@berth/sdk` and by package.
   * @param env Beside PATH and HOME.
   * @returns What it printed on standard output.
   * @throws Error with all of its output, if the types are wrong or it ends with another code than 0.
   */
  run(program: string, env?: Record<string, string>): Promise<string>
  /** Type-checks the sources of the SDK with the frameworks' own types, where they are built with a part of these. */
  checkSdk(): Promise<void>
  /** Runs a line of JavaScript by Node 20, the oldest that the SDK supports. */
  runByNode20(line: string): Promise<string>
}

/** For the tests of the file or suite that this is called in. */
export function useFrameworkProject(): FrameworkProject {
  const setup = {} as FrameworkProject
  beforeAll(async () => {
    const kept = await installed()
    const directory = await mkdtemp(join(tmpdir(), 'berth-framework-'))
    setup.directory = directory
    await linkPackages(kept, directory)
    await installSdk(directory)
    await writeFile(join(directory, 'package.json'), '{ "private": true, "type": "module" }')
    setup.copy = async (...files) => {
      for (const file of files) await copyFile(join(project, file), join(directory, basename(file)))
    }
    setup.run = async (program, env = {}) => {
      await setup.copy(program)
      const file = join(directory, basename(program))
      await checkTypes(directory, file)
      return await output(process.execPath, [file], directory, env)
    }
    setup.checkSdk = async () => {
      const sources = join(directory, 'sdk')
      await cp(join(project, 'packages/sdk/src'), sources, { recursive: true })
      await rm(join(sources, 'adapters/not-installed.d.ts'))
      const adapters = (await readdir(join(sources, 'adapters'))).map((name) => `sdk/adapters/${name}`)
      await output(
        tsc,
        [...strict, '--lib', 'es2022,dom,dom.iterable,dom.asynciterable,esnext.disposable', ...adapters],
        directory,
      )
    }
    setup.runByNode20 = async (line) =>
      await output(
        join(kept, `node_modules/node-linux-${process.arch}/bin/node`),
        ['--input-type=module', '-e', line],
        directory,
      )
  })
  afterAll(async () => await rm(setup.directory, { recursive: true }))
  return setup
}

/** Under a name that the lock file gives, so that other versions are other directories. */
async function installed(): Promise<string> {
  const lock = await readFile(join(packages, 'package-lock.json'))
  const name = createHash('sha256').update(lock).digest('hex').slice(0, 16)
  const all = process.env.BERTH_TEST_FRAMEWORKS ?? join(homedir(), '.cache/berth-frameworks')
  const kept = join(all, `npm-${name}`)
  if (await readdir(join(kept, 'node_modules')).catch(() => null)) return kept
  const fresh = `${kept}-${process.pid}`
  await cp(packages, fresh, { recursive: true })
  await output('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], fresh)
  // Another run may come first.
  await rename(fresh, kept).catch(async () => await rm(fresh, { recursive: true }))
  return kept
}

async function linkPackages(from: string, to: string): Promise<void> {
  const source = join(from, 'node_modules')
  for (const name of await readdir(source)) {
    if (name.startsWith('.')) continue
    const members = name.startsWith('@') ? await readdir(join(source, name)) : ['']
    for (const member of members) {
      const link = join(to, 'node_modules', name, member)
      await mkdir(join(link, '..'), { recursive: true })
      await symlink(join(source, name, member), link.replace(/\/$/, ''))
    }
  }
  const types = join(to, 'node_modules/@types/node')
  await rm(types, { force: true })
  await mkdir(join(types, '..'), { recursive: true })
  await symlink(join(project, 'node_modules/@types/node'), types)
}

const strict = (
  '--noEmit --strict --skipLibCheck --exactOptionalPropertyTypes --allowImportingTsExtensions ' +
  '--module nodenext --target es2024 --lib es2024,esnext.disposable --types node'
).split(' ')

async function checkTypes(directory: string, file: string): Promise<void> {
  await output(tsc, [...strict, file], directory)
}

async function output(
  command: string,
  args: string[],
  cwd: string,
  env: Record<string, string> = {},
): Promise<string> {
  const { PATH = '', HOME = '' } = process.env
  const options = { cwd, env: { PATH, HOME, ...env }, maxBuffer: 64 * 1024 * 1024 }
  try {
    return (await execute(command, args, options)).stdout
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}\n${stderr}`, { cause: error })
  }
}
