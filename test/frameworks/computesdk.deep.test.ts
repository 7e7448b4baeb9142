// The adapter for ComputeSDK in TypeScript, with the real package, on real units.

import { expect, it } from 'vitest'
import { useFrameworkProject } from '../support/framework-npm.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })
const frameworks = useFrameworkProject()

it('ComputeSDK runs sandboxes in units, with streams and snapshots, and the example runs', async () => {
  await frameworks.copy('examples/computesdk/sandbox.ts')
  const program = 'test/frameworks/programs/computesdk/computesdk-program.ts'
  const said = await frameworks.run(program, berth.connection)
  expect(said).toMatch(/pass 7\n.*fail 0\n/s)
})

it('the adapter for ComputeSDK is imported from the installed package by Node 20', async () => {
  const line = "import * as all from '@berth/sdk/computesdk'; console.log(Object.keys(all).join(' '))"
  expect(await frameworks.runByNode20(line)).toBe('berth\n')
})
