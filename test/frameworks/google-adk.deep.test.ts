// Agents of the Agent Development Kit with a scripted model, its environment and its code executor, on real units.

import { join } from 'node:path'
import { expect, it } from 'vitest'
import { project } from '../support/clients.ts'
import { useFrameworkPython } from '../support/framework-python.ts'
import { useBerth } from '../support/use-berth.ts'

const programs = join(project, 'test/frameworks/google-adk')
const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })
const python = useFrameworkPython('google-adk', { atLeast: '3.11', extra: 'google-adk' })

async function linesOf(program: string, ...args: string[]): Promise<string[]> {
  const env = berth.connection
  return (await python.run([join(programs, program), ...args], { env })).trim().split('\n')
}

it('the environment of the Agent Development Kit runs commands and keeps files in a unit', async () => {
  expect(await linesOf('check_environment.py')).toEqual(['initialize', 'execute', 'files', 'close'])
})

it('the code executor of the Agent Development Kit keeps variables by session and saves plots as artifacts', async () => {
  expect(await linesOf('check_code.py')).toEqual([
    'an agent with a table, variables and an error',
    'a plot as an artifact',
    'sessions apart',
    'time and warnings',
    'close',
  ])
})

it('an agent of the Agent Development Kit writes, edits, runs and reads a program in the unit of the example', async () => {
  const [last = ''] = (await linesOf('run_example.py', join(project, 'examples/google-adk'))).slice(-1)
  expect(JSON.parse(last.replace(/^told /, ''))).toEqual({
    said: 'done',
    told: [
      expect.objectContaining({ status: 'ok' }),
      expect.objectContaining({ status: 'ok' }),
      { status: 'error', exit_code: 3, stdout: '/root\naaaaaaa\n', stderr: 'wrong\n' },
      { status: 'ok', content: "     1\tprint('a' * 7)\n" },
      { status: 'error', error: 'File not found: none' },
    ],
  })
  expect((await berth.call<{ units: object[] }>('GET', '/v1/units')).body.units).toEqual([])
})
