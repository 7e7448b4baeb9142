// Debian's Python, whose packages the set-up brings for the tests: a machine without them runs what needs none.

import { execFile, execFileSync } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { project } from './clients.ts'

/** The one that Debian's packages are for; another may come first in PATH. */
export const python = '/usr/bin/python3'
export const pythonPackage = join(project, 'packages/python')

const run = promisify(execFile)

/** Whether it has them all. */
export function hasPythonPackages(...names: string[]): boolean {
  try {
    execFileSync(python, ['-c', `import ${names.join(', ')}`], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Answers what it prints; throws with it where it ends with another code than 0. Nothing is written beside the sources. */
export async function runPython(
  args: string[],
  { cwd = pythonPackage, env = {} }: { cwd?: string; env?: Record<string, string> } = {},
): Promise<string> {
  const own = { PATH: '/usr/bin:/bin', PYTHONPATH: join(pythonPackage, 'src'), PYTHONDONTWRITEBYTECODE: '1' }
  const { stdout } = await run(python, args, {
    cwd,
    env: { ...own, BERTH_DATA_DIR: '/nowhere', ...env },
  }).catch((error: { stdout: string; stderr: string }) => {
    throw new Error(`${error.stdout}${error.stderr}`)
  })
  return stdout
}

/** Builds a wheel as `pip install` of the folder does; answers its path. It needs hatchling. */
export async function buildWheelByHatchling(directory: string): Promise<string> {
  await runPython(['-m', 'hatchling', 'build', '-t', 'wheel', '-d', directory])
  const [name = ''] = await readdir(directory)
  return join(directory, name)
}
