// Each process of Berth is killed; the units keep running.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { eventually, processIds } from '../support/berth.ts'
import { createUnit, exec, listUnits } from '../support/berth-units.ts'
import { expectInvariants } from '../support/host-invariants.ts'
import { killPostgres, killSupervisor, postmasterOf, restartRole } from '../support/kill.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth()
let units: Unit[]

/** Reads a mark in memory, which is lost if the unit's processes are restarted. */
const markOf = (unit: Unit) => exec(berth, unit, ['cat', '/dev/shm/mark'])

beforeAll(async () => {
  units = []
  for (const name of ['one', 'two']) {
    const unit = await createUnit(berth, { name, image: 'berth.local/debian:12', size: 'nano' })
    // In memory, so that it is lost with the unit's processes.
    await exec(berth, unit, ['sh', '-c', `echo ${name} > /dev/shm/mark`])
    units.push(unit)
  }
})

async function expectUnitsUnharmed(): Promise<void> {
  await eventually(async () => {
    const listed = await listUnits(berth)
    expect(listed.map(({ name, state }) => `${name} ${state}`).toSorted()).toEqual([
      'one running',
      'two running',
    ])
    for (const unit of units) expect((await markOf(unit)).stdout).toBe(`${unit.name}\n`)
  })
  await expectInvariants(berth)
}

describe('units keep running', () => {
  it.each(['engine', 'server', 'gateway'] as const)(
    'when the %s is killed, which is restarted',
    async (role) => {
      await restartRole(berth, role)
      await expectUnitsUnharmed()
    },
  )

  it('when engine and server are killed together', async () => {
    await Promise.all([restartRole(berth, 'engine'), restartRole(berth, 'server')])
    await expectUnitsUnharmed()
  })

  it('when Postgres is killed, which is restarted', async () => {
    const before = await postmasterOf(berth)
    expect(await killPostgres(berth)).toBe(true)
    await eventually(async () => {
      const now = await postmasterOf(berth)
      expect(now).not.toBeNull()
      expect(now).not.toBe(before)
    })
    await expectUnitsUnharmed()
  })

  it('across Ctrl-C and the next start, which adopts them with the same API key', async () => {
    const { apiKey } = berth.credentials
    expect(await berth.pressCtrlC()).toBe(0)
    expect(berth.output).toContain('Units keep running.')
    const { processes, cgroups } = await berth.hostState()
    expect(processes.length).toBeGreaterThan(0)
    expect(cgroups.length).toBeGreaterThan(0)

    await berth.start()
    expect(berth.credentials.apiKey).toBe(apiKey)
    await expectUnitsUnharmed()
  })

  it('across a start without credentials.json, which creates a new key and keeps the old one valid', async () => {
    const { apiKey } = berth.credentials
    await berth.pressCtrlC()
    await rm(join(berth.dataDir, 'credentials.json'))
    await berth.start()
    expect(berth.credentials.apiKey).not.toBe(apiKey)
    await expectUnitsUnharmed()
    const headers = { authorization: `Bearer ${apiKey}` }
    expect((await fetch(`${berth.credentials.baseUrl}/v1/units`, { headers })).status).toBe(200)
  })

  it('when the supervisor is killed, which ends its child processes', async () => {
    const roles = await Promise.all(['engine', 'server', 'gateway'].map((role) => berth.pidOf(role)))
    await killSupervisor(berth)
    await eventually(async () => {
      const alive = new Set(await processIds())
      expect(roles.filter((pid) => pid !== null && alive.has(pid))).toEqual([])
    })

    await berth.start()
    await expectUnitsUnharmed()
  })
})
