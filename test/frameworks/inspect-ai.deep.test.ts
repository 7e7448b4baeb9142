// Inspect's own check of a sandbox provider, and an evaluation with its model for tests, on real units.

import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createUnit, listUnits } from '../support/berth-units.ts'
import { project } from '../support/clients.ts'
import { useFrameworkPython } from '../support/framework-python.ts'
import { useBerth } from '../support/use-berth.ts'

const programs = join(project, 'test/frameworks/inspect-ai')
const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })
const python = useFrameworkPython('inspect-ai', { atLeast: '3.11', extra: 'inspect-ai' })

it('an evaluation runs the example’s task in a unit, which is gone afterwards', async () => {
  const args = [join(programs, 'run_example.py'), join(project, 'examples/inspect-ai'), python.directory]
  const stdout = await python.run(args, { env: berth.connection })
  const [, told = ''] = /^told (.*)$/m.exec(stdout) ?? []
  expect(JSON.parse(told)).toEqual(['success', ['C'], '78498\n/workspace\nuser\n'])
  expect(await listUnits(berth)).toEqual([])
})

it('the cleanup command of Inspect destroys the units that a broken run left, and no other', async () => {
  const other = await createUnit(berth, { name: 'other', image: 'berth.local/python:3.11' })
  await python.run([join(programs, 'leave_unit.py')], { env: berth.connection })
  expect(await listUnits(berth)).toMatchObject([{ size: 'nano', timeToLive: '24h' }, { id: other.id }])
  await python.run(['-m', 'inspect_ai', 'sandbox', 'cleanup', 'berth'], { env: berth.connection })
  expect((await listUnits(berth)).map(({ id }) => id)).toEqual([other.id])
})

it('passes the self check of Inspect, all 44 of it, for a user that is not root', async () => {
  const loops = ['asyncio_default_fixture_loop_scope=module', 'asyncio_default_test_loop_scope=module']
  const options = ['asyncio_mode=auto', ...loops].flatMap((option) => ['-o', option])
  const args = ['-m', 'pytest', '-p', 'no:cacheprovider', '-q', ...options, programs]
  expect(await python.run(args, { env: berth.connection })).toMatch(/^44 passed/m)
})
