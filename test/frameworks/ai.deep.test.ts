// The adapter for the AI SDK, with the real package, on real units.

import { expect, it } from 'vitest'
import { useFrameworkProject } from '../support/framework-npm.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })
const frameworks = useFrameworkProject()

it('the AI SDK uses a unit as its sandbox and by the ready-made tools, and its example runs', async () => {
  await frameworks.copy('examples/ai-sdk/agent.ts')
  const program = 'test/frameworks/programs/ai/ai-program.ts'
  const said = await frameworks.run(program, berth.connection)
  expect(said).toMatch(/pass 13\n.*fail 0\n/s)
})

it('the adapter for the AI SDK is imported from the installed package by Node 20', async () => {
  const line = "import * as all from '@berth/sdk/ai'; console.log(Object.keys(all).join(' '))"
  expect(await frameworks.runByNode20(line)).toBe('unitSandbox unitTools\n')
})
