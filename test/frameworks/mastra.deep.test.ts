// The adapter for Mastra in TypeScript, with the real package, on real units.

import { expect, it } from 'vitest'
import { useFrameworkProject } from '../support/framework-npm.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })
const frameworks = useFrameworkProject()

it('agents of Mastra work in units, with processes and files, and the example runs', async () => {
  await frameworks.copy('examples/mastra/agent.ts')
  const program = 'test/frameworks/programs/mastra/mastra-program.ts'
  const said = await frameworks.run(program, berth.connection)
  expect(said).toMatch(/pass 11\n.*fail 0\n/s)
})

it('all adapters of the TypeScript SDK agree with the types of their frameworks', async () => {
  await frameworks.checkSdk()
})
