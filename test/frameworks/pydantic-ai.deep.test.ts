// An agent of Pydantic AI with a scripted model, and its test model, which calls every tool, on real units.

import { join } from 'node:path'
import { expect, it } from 'vitest'
import { project } from '../support/clients.ts'
import { useFrameworkPython } from '../support/framework-python.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })
const python = useFrameworkPython('pydantic-ai', { atLeast: '3.11', extra: 'pydantic-ai' })

it('the agent of the example runs programs, reads and writes files, and goes on after a failed call', async () => {
  const program = join(project, 'test/frameworks/pydantic-ai/run_example.py')
  const env = berth.connection
  const stdout = await python.run([program, join(project, 'examples/pydantic-ai')], { env })
  const [, told = ''] = /^told (.*)$/m.exec(stdout) ?? []
  const [scripted, called] = JSON.parse(told) as unknown[]
  expect(scripted).toEqual([
    '15 bytes written',
    {
      exit_code: 3,
      stdout: '/root\naaaaaaa\n',
      stderr: expect.stringContaining('none: No such file'),
    },
    {
      exit_code: 0,
      stdout: expect.stringMatching(/^0{15000}\n\[10000 characters [^]*\n0{15000}$/),
      stderr: '',
    },
    { exit_code: expect.any(Number), stdout: '', stderr: expect.stringContaining('ran out of its 1 s') },
    "print('a' * 7)\n",
    expect.stringContaining('/root/none'),
    expect.arrayContaining([{ name: 'a.py', type: 'file', bytes: 15 }]),
    expect.stringMatching(/^https:/),
  ])
  expect(called).toEqual(['list_directory', 'publish_port', 'read_file', 'run', 'write_file'])
})
