// The adapter for the OpenAI Agents SDK in TypeScript, with the real package, on real units.

import { expect, it } from 'vitest'
import { useFrameworkProject } from '../support/framework-npm.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })
const frameworks = useFrameworkProject()

it('agents of the OpenAI Agents SDK work in units, by its client and by its sessions, and the example runs', async () => {
  await frameworks.copy('examples/openai-agents/agent.ts')
  const program = 'test/frameworks/programs/openai-agents/openai-agents-program.ts'
  const said = await frameworks.run(program, berth.connection)
  expect(said).toMatch(/pass 13\n.*fail 0\n/s)
})

it('the adapter for the OpenAI Agents SDK is imported from the installed package by Node 20', async () => {
  const line = "import * as all from '@berth/sdk/openai-agents'; console.log(Object.keys(all).join(' '))"
  expect(await frameworks.runByNode20(line)).toBe('UnitSandboxClient UnitSession unitSession\n')
})
