// LangChain's standard tests for sandboxes, a deep agent with a scripted model, and the deepagents CLI's own way to a
// sandbox, each on real units.

import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { project } from '../support/clients.ts'
import { useFrameworkPython } from '../support/framework-python.ts'
import { useBerth } from '../support/use-berth.ts'

const programs = join(project, 'test/frameworks/langchain')
const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })

describe('deepagents', () => {
  const python = useFrameworkPython('langchain', { atLeast: '3.11', extra: 'langchain' })

  it('an agent writes, edits, runs and reads a program in the unit of the example', async () => {
    const args = [join(programs, 'run_example.py'), join(project, 'examples/langchain')]
    const stdout = await python.run(args, { env: berth.connection })
    expect(JSON.parse(stdout)).toEqual([
      expect.stringContaining('/root/a.py'),
      expect.stringContaining('/root/a.py'),
      expect.stringMatching(/^aaaaaaa\ncat: .*No such file[^]*exit code 3/),
      expect.stringContaining("print('a' * 7)"),
    ])
  })

  it('passes the standard tests of LangChain for sandboxes, but for those that every sandbox fails', async () => {
    const options = ['-p', 'no:cacheprovider', '-o', 'asyncio_mode=auto', '-q']
    const stdout = await python.run(['-m', 'pytest', ...options, programs], { env: berth.connection })
    // Of 86 tests seven are stale, and fail with and without a unit.
    expect(stdout).toMatch(/^79 passed, 79 deselected, 14 xfailed/m)
  })
})

describe('the deepagents CLI', () => {
  const python = useFrameworkPython('deepagents-code', { atLeast: '3.12', extra: 'langchain' })

  it('finds the provider by its entry point, and makes, finds and deletes its sandbox', async () => {
    const stdout = await python.run([join(programs, 'ask_provider.py')], { env: berth.connection })
    const [, told = ''] = /^told (.*)$/m.exec(stdout) ?? []
    expect(JSON.parse(told)).toEqual([
      '/root',
      '/root\n',
      'made\n',
      'running',
      'nano',
      'destroyed',
      'not found',
    ])
  })
})
