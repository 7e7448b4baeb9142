// mini-swe-agent's own program with its deterministic model, and the environment alone, on real units.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { project } from '../support/clients.ts'
import { useFrameworkPython } from '../support/framework-python.ts'
import { useBerth } from '../support/use-berth.ts'

const programs = join(project, 'test/frameworks/mini-swe-agent')
const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })
const python = useFrameworkPython('mini-swe-agent', { atLeast: '3.10', extra: 'mini-swe-agent' })
const environment = () => ({
  ...berth.connection,
  // Without it the program asks for a model's key first.
  MSWEA_CONFIGURED: 'true',
  MSWEA_SILENT_STARTUP: 'true',
})

it('the environment of mini-swe-agent runs commands in a unit with their user, time and submission', async () => {
  const stdout = await python.run([join(programs, 'check_environment.py')], { env: environment() })
  expect(stdout.trim().split('\n')).toEqual([
    'environment, user and directory',
    'time',
    'both streams in order',
    'submission',
    'template variables',
    'cleanup',
  ])
})

it('mini-swe-agent solves a task in a unit of the example, and its unit is destroyed with its process', async () => {
  const output = join(python.directory, 'trajectory.json')
  const configs = [
    'mini.yaml',
    join(project, 'examples/mini-swe-agent/berth.yaml'),
    join(programs, 'model.yaml'),
  ]
  await python.run(
    ['-m', 'minisweagent.run.mini', ...configs.flatMap((path) => ['-c', path])].concat([
      '--yolo',
      '--exit-immediately',
      '--task',
      'go',
      '--output',
      output,
    ]),
    { env: environment() },
  )
  const { info, messages } = JSON.parse(await readFile(output, 'utf8')) as {
    info: object
    messages: { role: string; extra?: { raw_output?: string; returncode?: number } }[]
  }
  expect(info).toMatchObject({
    exit_status: 'Submitted',
    submission: 'print(6 * 7)\n',
    config: { environment_type: 'berth.adapters.mini_swe_agent.BerthEnvironment' },
  })
  const told = messages.filter(({ role }) => role === 'tool').map(({ extra }) => extra)
  expect(told).toMatchObject([
    { raw_output: expect.stringMatching(/^\/root\nbase-/), returncode: 0 },
    { raw_output: '42\nwrong\nright\n', returncode: 3 },
    // The command that submits has no answer.
    { raw_output: '', returncode: -1 },
  ])
  expect((await berth.call<{ units: object[] }>('GET', '/v1/units')).body.units).toEqual([])
})
