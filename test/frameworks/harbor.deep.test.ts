// A trial of Harbor with its oracle agent by its own program, and the environment alone, on real units.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { project } from '../support/clients.ts'
import { useFrameworkPython } from '../support/framework-python.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })
const python = useFrameworkPython('harbor', { atLeast: '3.12', extra: 'harbor' })

it('the environment of Harbor runs commands, moves files and keeps network policies in a unit', async () => {
  const args = [join(project, 'test/frameworks/harbor/check_environment.py'), python.directory]
  const stdout = await python.run(args, { env: berth.connection })
  expect(stdout.trim().split('\n')).toEqual([
    'start',
    'commands',
    'files',
    'network policies',
    'stop',
    'what it refuses',
  ])
})

it('the oracle agent of Harbor solves the task of the example in a unit, which is destroyed after its trial', async () => {
  const trials = join(python.directory, 'trials')
  const program = ['-c', 'from harbor.cli.main import app; app()', 'trials', 'start']
  const task = ['--path', join(project, 'examples/harbor/print-answer'), '--agent', 'oracle']
  const environment = ['--environment-import-path', 'berth.adapters.harbor:BerthEnvironment']
  const stored = ['--trials-dir', trials, '--trial-name', 'one']
  await python.run([...program, ...task, ...environment, ...stored], { env: berth.connection })
  const result = JSON.parse(await readFile(join(trials, 'one/result.json'), 'utf8')) as object
  expect(result).toMatchObject({ exception_info: null, verifier_result: { rewards: { reward: 1 } } })
  expect((await berth.call<{ units: object[] }>('GET', '/v1/units')).body.units).toEqual([])
})
