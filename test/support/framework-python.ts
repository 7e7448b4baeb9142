// A Python with one framework at its newest tested version, and with the library of this checkout. The environment is kept
// between runs, outside the tree; the library is built and unpacked anew for each test file, before it on the search path,
// so that its entry points are found as in an installation.

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { glob } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { writeWheel } from '../../scripts/python-wheel.ts'
import { readIfThere } from '../../src/lib/read-if-there.ts'
import { project } from './clients.ts'
import { pythonPackage } from './python.ts'

const execute = promisify(execFile)
const UV = 'uv==0.13.9'
const MAX_OUTPUT = 64 * 1024 * 1024

/** The requirements with exact versions: `uv pip compile` writes such a file (its own first lines say how). */
const requirementsOf = (name: string) => join(project, 'test/frameworks/requirements', `${name}.txt`)

/** What a test does with it once tests run. */
export type FrameworkPython = {
  /**
   * Runs the environment's Python.
   *
   * @param args Its arguments, such as `['-m', 'pytest', 'a.py']`.
   * @param options `env`: besides PATH and HOME. `cwd`: the test's own directory unless it is named.
   * @returns What it prints on standard output.
   * @throws Error with all of its output, if it ends with a code other than 0.
   */
  run(args: readonly string[], options?: { env?: Record<string, string>; cwd?: string }): Promise<string>
  /** A temporary directory for the files of the test. */
  directory: string
}

/**
 * For the tests of the file or suite that this is called in. Where no Python from `atLeast` on is on the machine, they are
 * skipped, and say so.
 *
 * @param name Of the file with the requirements, `test/frameworks/requirements/NAME.txt`.
 * @param options `extra`: the extra of `berth-sdk` for the framework. Its range must admit the versions that are tested,
 *   which is checked here. Null: the library is no part of the test.
 */
export function useFrameworkPython(
  name: string,
  { atLeast, extra }: { atLeast: '3.10' | '3.11' | '3.12'; extra: string | null },
): FrameworkPython {
  const python = {} as FrameworkPython
  let interpreter: string | null = null
  beforeAll(async () => {
    interpreter = await findInterpreter(atLeast)
    if (interpreter === null) return
    const environment = await environmentOf(name, interpreter)
    python.directory = await mkdtemp(join(tmpdir(), `berth-${name}-`))
    const library = extra === null ? null : await installLibrary(environment, python.directory, extra)
    python.run = async (args, { env = {}, cwd = python.directory } = {}) =>
      await runOrThrow(join(environment, 'bin/python'), args, {
        cwd,
        env: {
          PATH: `${join(environment, 'bin')}:/usr/bin:/bin`,
          HOME: python.directory,
          ...(library !== null && { PYTHONPATH: library }),
          PYTHONDONTWRITEBYTECODE: '1',
          BERTH_DATA_DIR: '/nowhere',
          ...env,
        },
      })
  })
  beforeEach(({ skip }) => {
    if (interpreter === null) skip(`no Python ${atLeast} or newer with ensurepip on this machine`)
  })
  afterAll(async () => {
    if (interpreter !== null) await rm(python.directory, { recursive: true })
  })
  return python
}

/** What the frameworks themselves are tested with comes first. */
const VERSIONS = ['3.12', '3.13', '3.11', '3.10']

async function findInterpreter(atLeast: string): Promise<string | null> {
  for (const version of VERSIONS.filter((each) => minorOf(each) >= minorOf(atLeast))) {
    const installed = join(process.env.PYENV_ROOT ?? join(homedir(), '.pyenv'), 'versions', `${version}.*`)
    const candidates = [`python${version}`]
    for await (const path of glob(`${installed}/bin/python3`)) candidates.push(path)
    for (const candidate of candidates) if (await canMakeEnvironments(candidate)) return candidate
  }
  return null
}

const minorOf = (version: string) => Number(version.split('.')[1])

async function canMakeEnvironments(interpreter: string): Promise<boolean> {
  return await execute(interpreter, ['-c', 'import ensurepip, venv']).then(
    () => true,
    () => false,
  )
}

/** Makes the environment unless a run before has made it with the same requirements and interpreter. */
async function environmentOf(name: string, interpreter: string): Promise<string> {
  const requirements = await readFile(requirementsOf(name), 'utf8')
  const mark = createHash('sha256')
    .update(`${interpreter}\n${UV}\n${requirements}`)
    .digest('hex')
    .slice(0, 16)
  const kept = process.env.BERTH_TEST_FRAMEWORKS ?? join(homedir(), '.cache/berth-frameworks')
  const environment = join(kept, `${name}-${mark}`)
  // Written last: an environment without it was broken off.
  const complete = join(environment, 'complete')
  if ((await readIfThere(complete)) !== null) return environment
  await rm(environment, { recursive: true, force: true })
  await mkdir(dirname(environment), { recursive: true })
  await runOrThrow(interpreter, ['-m', 'venv', environment])
  const own = join(environment, 'bin/python')
  await runOrThrow(own, ['-m', 'pip', 'install', '--quiet', UV])
  await runOrThrow(own, ['-m', 'uv', 'pip', 'install', '--quiet', '-p', own, '-r', requirementsOf(name)])
  await writeFile(complete, '')
  return environment
}

/** Returns the directory that it is unpacked into. */
async function installLibrary(environment: string, directory: string, extra: string): Promise<string> {
  const own = join(environment, 'bin/python')
  const wheel = await writeWheel(pythonPackage, join(directory, 'wheel'))
  const library = join(directory, 'library')
  const install = ['-m', 'uv', 'pip', 'install', '-p', own]
  // With the extra, nothing may be missing or have another version than it asks for.
  const { stderr } = await execute(own, [...install, '--dry-run', '--offline', `${wheel}[${extra}]`])
  const changes = stderr.split('\n').filter((line) => /^ [-+~] /.test(line) && !line.includes('berth-sdk'))
  if (changes.length > 0)
    throw new Error(`The extra ${extra} asks for others than are tested:\n${changes.join('\n')}`)
  await runOrThrow(own, [...install, '--quiet', '--no-deps', '--target', library, wheel])
  return library
}

async function runOrThrow(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string> } = {},
): Promise<string> {
  const { stdout } = await execute(program, args, { ...options, maxBuffer: MAX_OUTPUT }).catch(
    (error: { stdout: string; stderr: string }) => {
      throw new Error(`${error.stdout}${error.stderr}`)
    },
  )
  return stdout
}
