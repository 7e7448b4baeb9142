// Each process of a machine can be killed from outside (reliability F7). Its unit reports that within seconds, sleeps, and
// wakes with its files.

import { beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { eventually } from '../support/berth.ts'
import { createUnit, exec } from '../support/berth-units.ts'
import { expectInvariants } from '../support/host-invariants.ts'
import { kernelTellsDeaths, killRunPart, type RunPart } from '../support/kill.ts'
import { useBerth } from '../support/use-berth.ts'

/** Long enough for a busy machine. */
const TOLD_WITHIN_MS = 30_000

const berth = useBerth(null)

const parts = {
  runc: ['init', 'monitor'],
  gvisor: ['sandbox', 'gofer', 'monitor'],
} satisfies Record<string, RunPart[]>

const get = async ({ id }: Unit) => (await berth.call<Unit>('GET', `/v1/units/${id}`)).body

describe.each(Object.entries(parts))('with %s', (isolation, kinds) => {
  beforeAll(async () => {
    await berth.start({ BERTH_ISOLATION: isolation })
  })

  async function makeUnit(name: string): Promise<Unit> {
    const unit = await createUnit(berth, { name, image: 'berth.local/debian:12', size: 'nano' })
    // Not synced, because what a unit has written survives the death of its sandbox.
    await exec(berth, unit, ['sh', '-c', `echo ${name} > /root/mark`])
    return unit
  }

  async function expectWakesWhole(unit: Unit): Promise<void> {
    expect((await exec(berth, unit, ['cat', '/root/mark'])).stdout).toBe(`${unit.name}\n`)
    await expectInvariants(berth)
  }

  // Before Linux 6.15 only the parent learns what ended a process, and every death except the monitor's looks like an exit.
  it.skipIf(!kernelTellsDeaths()).each(kinds)(
    'a unit whose %s is killed falls asleep and wakes for its next use',
    async (part) => {
      const unit = await makeUnit(`${isolation}-${part}`)
      expect(await killRunPart(berth, unit.id, part)).toBe(true)
      await eventually(async () => expect((await get(unit)).state).toBe('sleeping'), TOLD_WITHIN_MS)
      expect(await get(unit)).toMatchObject({ stoppedReason: 'provider', lastExit: null, error: null })
      await expectInvariants(berth)
      await expectWakesWhole(unit)
    },
  )

  it('a unit whose process exits by itself is stopped as exited and is not woken', async () => {
    const cmd = ['sh', '-c', 'test -f /root/mark && exit 137; touch /root/mark; sleep infinity']
    const spec = { name: `${isolation}-itself`, image: 'berth.local/debian:12', size: 'nano' }
    const unit = await createUnit(berth, { ...spec, entrypoint: cmd, cmd: [] })
    const hasMark = async () => (await exec(berth, unit, ['test', '-f', '/root/mark'])).exitCode === 0
    await eventually(async () => expect(await hasMark()).toBe(true))
    expect((await berth.call('POST', `/v1/units/${unit.id}/stop`)).status).toBe(200)
    await berth.call('POST', `/v1/units/${unit.id}/start`)
    await eventually(async () => expect((await get(unit)).state).toBe('stopped'), TOLD_WITHIN_MS)
    expect(await get(unit)).toMatchObject({
      stoppedReason: 'exited',
      lastExit: { code: 137, oomKilled: false },
    })
    const refused = await berth.call('POST', `/v1/units/${unit.id}/exec`, { cmd: ['true'] })
    expect(refused.status).toBe(409)
  })

  it.each(kinds)(
    'a unit whose %s is killed while it sleeps wakes for the next call with its files',
    async (part) => {
      const unit = await makeUnit(`${isolation}-${part}-asleep`)
      const slept = await berth.call('POST', `/v1/units/${unit.id}/sleep`, { sleep: '30m', now: true })
      expect(slept.status).toBe(200)
      expect(await killRunPart(berth, unit.id, part)).toBe(true)
      // A process killed while frozen dies when it is thawed. The call must not notice.
      expect((await exec(berth, unit, ['cat', '/root/mark'])).stdout).toBe(`${unit.name}\n`)
      await expectInvariants(berth)
    },
  )
})
