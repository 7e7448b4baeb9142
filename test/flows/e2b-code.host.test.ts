// The code interpreter of sandboxes, by the official client, unchanged, on real units.

import { Sandbox } from '@e2b/code-interpreter'
import { beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/berth.ts'
import { connectionTo } from '../support/e2b.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth()
const LONG = { requestTimeoutMs: 120_000, timeoutMs: 120_000 }

describe('the code interpreter of a sandbox', () => {
  let sandbox: Sandbox
  beforeAll(async () => {
    // The first one on a host waits longer for its image than a client's call may take.
    const create = () => Sandbox.create({ ...connectionTo(berth), requestTimeoutMs: 600_000 })
    sandbox = await eventually(create, 600_000)
    await sandbox.runCode('1', LONG)
  }, 700_000)

  it('keeps variables from one run to the next', async () => {
    await sandbox.runCode('x = 1', LONG)
    const execution = await sandbox.runCode('x += 1; x', LONG)
    expect(execution.text).toBe('2')
    expect(execution.executionCount).toBeGreaterThan(1)
  })

  it('tells output and values while the code runs', async () => {
    const told: string[] = []
    const { logs } = await sandbox.runCode('import sys\nprint("a")\nprint("b", file=sys.stderr)\n"c"', {
      ...LONG,
      onStdout: ({ line }) => void told.push(line),
      onStderr: ({ line }) => void told.push(line),
      onResult: ({ text }) => void told.push(text ?? ''),
    })
    expect(told.toSorted()).toEqual(['a\n', 'b\n', 'c'])
    expect(logs).toEqual({ stdout: ['a\n'], stderr: ['b\n'] })
  })

  it('gives plots as pictures and charts, tables as data, and errors with their traceback', async () => {
    const [plot] = (
      await sandbox.runCode('import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()', LONG)
    ).results
    expect(
      Buffer.from(plot?.png ?? '', 'base64')
        .subarray(1, 4)
        .toString(),
    ).toBe('PNG')
    expect(plot?.chart).toMatchObject({
      type: 'line',
      elements: [
        {
          points: [
            [0, 1],
            [1, 2],
          ],
        },
      ],
    })
    const [table] = (await sandbox.runCode('import pandas as pd\npd.DataFrame({"a": [1, 2]})', LONG)).results
    expect(table?.data).toEqual({ a: [1, 2] })
    const { error } = await sandbox.runCode('1 / 0', LONG)
    expect(error).toMatchObject({ name: 'ZeroDivisionError', value: 'division by zero' })
    expect(error?.traceback).toContain('ZeroDivisionError')
  })

  it('runs other languages, and code with an environment', async () => {
    expect((await sandbox.runCode('const y: number = 2; y', { ...LONG, language: 'ts' })).text).toBe('2')
    expect((await sandbox.runCode('echo hi', { ...LONG, language: 'bash' })).logs.stdout).toEqual(['hi\n'])
    const named = await sandbox.runCode('import os; os.environ["A"]', { ...LONG, envs: { A: 'b' } })
    expect(named.text).toBe('b')
  })

  it('has contexts apart, which are listed, restarted and removed', async () => {
    const context = await sandbox.createCodeContext({ cwd: '/tmp', requestTimeoutMs: 120_000 })
    expect((await sandbox.runCode('import os; z = 1; os.getcwd()', { ...LONG, context })).text).toBe('/tmp')
    expect((await sandbox.runCode('z', LONG)).error?.name).toBe('NameError')
    expect((await sandbox.listCodeContexts()).map(({ id }) => id)).toContain(context.id)
    await sandbox.restartCodeContext(context)
    expect((await sandbox.runCode('z', { ...LONG, context })).error?.name).toBe('NameError')
    await sandbox.removeCodeContext(context)
    await expect(sandbox.runCode('1', { ...LONG, context })).rejects.toThrow(/context/)
  })

  it('interrupts code whose time is over, and runs the next', async () => {
    await expect(sandbox.runCode('while True: pass', { timeoutMs: 1000 })).rejects.toThrow(/timed out/i)
    expect((await sandbox.runCode('1 + 1', LONG)).text).toBe('2')
  })
})
