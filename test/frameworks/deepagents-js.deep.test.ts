// The adapter for deepagents in TypeScript, with the real package, on real units.

import { expect, it } from 'vitest'
import { useFrameworkProject } from '../support/framework-npm.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })
const frameworks = useFrameworkProject()

it('deep agents work in a unit by their own file tools, and the example runs', async () => {
  await frameworks.copy('examples/deepagents/agent.ts')
  const program = 'test/frameworks/programs/deepagents/deepagents-program.ts'
  const said = await frameworks.run(program, berth.connection)
  expect(said).toMatch(/pass 5\n.*fail 0\n/s)
})

it('the adapter for deepagents is imported from the installed package by Node 20', async () => {
  const line = "import * as all from '@berth/sdk/deepagents'; console.log(Object.keys(all).join(' '))"
  expect(await frameworks.runByNode20(line)).toBe('UnitBackend\n')
})
