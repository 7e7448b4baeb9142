// An agent of smolagents with a scripted model, and its executor alone, on real units.

import { join } from 'node:path'
import { expect, it } from 'vitest'
import { project } from '../support/clients.ts'
import { useFrameworkPython } from '../support/framework-python.ts'
import { useBerth } from '../support/use-berth.ts'

const programs = join(project, 'test/frameworks/smolagents')
const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })
const python = useFrameworkPython('smolagents', { atLeast: '3.10', extra: 'smolagents' })

it('the executor of smolagents runs tools, variables, pictures and errors in contexts of a unit', async () => {
  const stdout = await python.run([join(programs, 'check_executor.py')], { env: berth.connection })
  expect(stdout.trim().split('\n')).toEqual([
    'tools',
    'variables, with a picture longer than one call',
    'contexts apart',
    'pictures',
    'logs before an error',
    'time',
    'a package that cannot be installed',
    'cleanup',
  ])
})

it('an agent of smolagents keeps its variables from step to step in the unit of the example', async () => {
  const args = [join(programs, 'run_example.py'), join(project, 'examples/smolagents')]
  const stdout = await python.run(args, { env: berth.connection })
  const [, told = ''] = /^told (.*)$/m.exec(stdout) ?? []
  expect(JSON.parse(told)).toEqual({
    mean: 4,
    pair: "(1, b'two')",
    told: [expect.stringContaining('kept 3'), expect.stringContaining('ZeroDivisionError')],
  })
})
