// A process of Berth that is alive but hangs (reliability F24) is replaced within 30 seconds, and units are not affected.

import { beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { eventually } from '../support/berth.ts'
import { createUnit, exec, listUnits } from '../support/berth-units.ts'
import { arm } from '../support/failpoints.ts'
import { useBerth } from '../support/use-berth.ts'

const WITHIN_MS = 30_000

const berth = useBerth({ BERTH_FAILPOINTS: 'on' })
let unit: Unit

beforeAll(async () => {
  unit = await createUnit(berth, { name: 'one', image: 'berth.local/debian:12', size: 'nano' })
  // In memory, so that it is lost with the unit's processes.
  await exec(berth, unit, ['sh', '-c', 'echo here > /dev/shm/mark'])
})

async function expectAnother(role: string, before: number | null): Promise<void> {
  await eventually(async () => {
    const now = await berth.pidOf(role)
    expect(now).not.toBeNull()
    expect(now).not.toBe(before)
    expect((await exec(berth, unit, ['cat', '/dev/shm/mark'])).stdout).toBe('here\n')
  }, WITHIN_MS)
}

describe('the supervisor replaces', () => {
  it('a server whose event loop is blocked, and the interrupted create is completed', async () => {
    const before = await berth.pidOf('server')
    await arm(berth, 'server', 'create.image.before', 'block')
    const spec = { name: 'two', image: 'berth.local/debian:12', size: 'nano' }
    const broken = berth.call('POST', '/v1/units', { spec }).catch((error: unknown) => error)
    await expectAnother('server', before)
    expect(await broken).toBeInstanceOf(Error)
    await eventually(async () => {
      const listed = await listUnits(berth)
      expect(listed.find(({ name }) => name === 'two')?.state).toBe('running')
    })
  })

  it.each(['engine', 'server', 'gateway'])('a stopped %s', async (role) => {
    const before = await berth.pidOf(role)
    if (before === null) throw new Error(`the ${role} does not run`)
    process.kill(before, 'SIGSTOP')
    await expectAnother(role, before)
  })
})
