// Adopt, do not kill (reliability F5): whichever process of Berth dies, twenty machines of both classes continue, including
// those that are running a command, and another instance's machine is not affected.

import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import type { Berth } from '../support/berth.ts'
import { createUnit, type Exec, exec, listUnits } from '../support/berth-units.ts'
import { expectInvariants } from '../support/host-invariants.ts'
import { killRole, killSupervisor, restartRole } from '../support/kill.ts'
import { callPatiently, send } from '../support/patient-client.ts'
import { useBerth } from '../support/use-berth.ts'

/** Number of units per class. */
const COUNTS = { gvisor: 4, runc: 16 }

const berth = useBerth(null)
const other = useBerth({ BERTH_ISOLATION: 'runc' })
const units: Unit[] = []
let neighbour: Unit

const spec = (name: string) => ({
  name,
  image: 'berth.local/debian:12',
  size: 'nano',
  cmd: ['sh', '-c', `echo ${name} began; exec sleep infinity`],
})

/** Leaves a mark in memory, which is gone if the unit's processes are. */
const mark = async (of: Berth, unit: Unit) =>
  expect((await exec(of, unit, ['sh', '-c', `echo ${unit.name} > /dev/shm/mark`])).exitCode).toBe(0)

beforeAll(async () => {
  neighbour = await createUnit(other, spec('neighbour'))
  await mark(other, neighbour)
  for (const [isolation, count] of Object.entries(COUNTS)) {
    await berth.start({ BERTH_ISOLATION: isolation })
    const names = Array.from({ length: count }, (_, index) => `${isolation}-${index}`)
    units.push(...(await Promise.all(names.map((name) => createUnit(berth, spec(name))))))
  }
  await Promise.all(units.map((unit) => mark(berth, unit)))
})

/** Starts long commands in every third unit and checks the responses that their callers get. */
async function inTheMiddleOfCommands(kill: () => Promise<unknown>): Promise<void> {
  const busy = units.filter((_, index) => index % 3 === 0)
  const calls = busy.map((unit) => {
    const body = { cmd: ['sleep', '5'] }
    return send<Exec>(berth, { method: 'POST', path: `/v1/units/${unit.id}/exec`, body })
  })
  await delay(1500)
  await kill()
  for (const outcome of await Promise.all(calls)) {
    // It succeeded or its outcome is unknown; it must never look like a failure of the command.
    if (outcome.kind !== 'answered') continue
    expect([200, 502, 503], JSON.stringify(outcome.body)).toContain(outcome.status)
    if (outcome.status === 200) expect(outcome.body.exitCode).toBe(0)
  }
}

async function expectNobodyHarmed(): Promise<void> {
  await Promise.all(
    units.map(async ({ id, name }) => {
      const path = `/v1/units/${id}`
      const body = { cmd: ['cat', '/dev/shm/mark'] }
      const ran = await callPatiently<Exec>(berth, { method: 'POST', path: `${path}/exec`, body })
      expect([ran.status, ran.body.stdout], JSON.stringify(ran.body)).toEqual([200, `${name}\n`])
      const logs = await callPatiently<{ lines: { text: string }[] }>(berth, {
        method: 'GET',
        path: `${path}/logs`,
      })
      expect(logs.body.lines.map(({ text }) => text)).toEqual([`${name} began`])
    }),
  )
  const listed = await listUnits(berth)
  expect(listed.map(({ state, lastExit }) => ({ state, lastExit }))).toEqual(
    units.map(() => ({ state: 'running', lastExit: null })),
  )
  expect((await exec(other, neighbour, ['cat', '/dev/shm/mark'])).stdout).toBe('neighbour\n')
  await expectInvariants(berth)
  await expectInvariants(other)
}

describe('twenty units keep running', () => {
  it('when the engine is killed while commands run', async () => {
    await inTheMiddleOfCommands(() => restartRole(berth, 'engine'))
    await expectNobodyHarmed()
  })

  it('when the server is killed while commands run', async () => {
    await inTheMiddleOfCommands(() => restartRole(berth, 'server'))
    await expectNobodyHarmed()
  })

  it('when engine and server are killed at once, and the engine again as it comes up', async () => {
    await inTheMiddleOfCommands(async () => {
      await Promise.all([restartRole(berth, 'engine'), restartRole(berth, 'server')])
      await killRole(berth, 'engine')
    })
    await expectNobodyHarmed()
  })

  it('when all of Berth is killed, and started again', async () => {
    await inTheMiddleOfCommands(() => killSupervisor(berth))
    await berth.start({ BERTH_ISOLATION: 'runc' })
    await expectNobodyHarmed()
  })
})
