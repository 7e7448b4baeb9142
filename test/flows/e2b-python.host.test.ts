// The official client in Python, where the interpreter that BERTH_TEST_E2B_PYTHON names, or Debian's, has it.

import { execFile, execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { connectionTo, createSandbox } from '../support/e2b.ts'
import { python } from '../support/python.ts'
import { useBerth } from '../support/use-berth.ts'

const interpreter = process.env.BERTH_TEST_E2B_PYTHON ?? python
const program = fileURLToPath(new URL('../support/e2b_program.py', import.meta.url))

function hasClient(): boolean {
  try {
    execFileSync(interpreter, ['-c', 'import e2b'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

describe.skipIf(!hasClient())('a program in Python', () => {
  const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })

  beforeAll(async () => {
    // The first sandbox of an image is refused until the image is built.
    await (await createSandbox(berth)).kill()
  })

  it('runs with and without async as it does elsewhere', async () => {
    const { apiKey, apiUrl, sandboxUrl } = connectionTo(berth)
    const env = { E2B_API_KEY: apiKey, E2B_API_URL: apiUrl, E2B_SANDBOX_URL: sandboxUrl }
    const { stdout } = await promisify(execFile)(interpreter, [program], {
      env: { PATH: process.env.PATH, E2B_VALIDATE_API_KEY: 'false', PYTHONDONTWRITEBYTECODE: '1', ...env },
    }).catch((error: { code: number; signal: string; stdout: string; stderr: string }) => {
      const { code, signal, stdout: printed, stderr } = error
      throw new Error(`It ended with ${code ?? signal}: ${printed}${stderr}`)
    })
    expect(JSON.parse(stdout)).toEqual({
      sync: {
        run: 'blue\nuser\n',
        failing: [3, 'before\n'],
        typed: 'typed\n',
        killed: [true, []],
        shown: true,
        read: ['eins', 'zwei'],
        listed: ['one', 'two', 'watched'],
        moved: '/home/user/three',
        exists: [false, true],
        watched: [
          ['create', 'file'],
          ['write', 'file'],
        ],
        found: true,
        paused: [true, false],
        resumed: 'back\n',
        ended: [true, false, false],
      },
      async: {
        read: 'content',
        commands: ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'],
        listed: ['file'],
        ended: [true, false],
      },
    })
  })
})
