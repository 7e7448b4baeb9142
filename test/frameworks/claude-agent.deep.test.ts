// The Claude Agent SDK for Python, whose program is a stand-in in a unit.

import { join } from 'node:path'
import { expect, it } from 'vitest'
import { project } from '../support/clients.ts'
import { useFrameworkPython } from '../support/framework-python.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })
const python = useFrameworkPython('claude-agent', { atLeast: '3.10', extra: 'claude-agent' })

it('the Claude Agent SDK talks to its program in a unit, which has no key of this machine', async () => {
  const program = join(project, 'test/frameworks/claude-agent/check_transport.py')
  const env = { ...berth.connection, ANTHROPIC_API_KEY: 'of-this-machine' }
  const said = await python.run([program, join(project, 'examples/claude-agent')], { env })
  expect(said.trim().split('\n')).toEqual([
    "the example, with its options and without this machine's keys",
    'several questions of a client, long ones too',
    'one query',
    'a program that fails',
    'one that cannot start',
  ])
})
