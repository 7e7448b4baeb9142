// Reliability S29: when any step of any operation fails with any message, callers get the error envelope, and no
// internal detail.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { forkSaga } from '../../src/domain/forks/run.ts'
import { createOperation } from '../../src/domain/units/create.ts'
import { destroyOperation } from '../../src/domain/units/destroy.ts'
import { sleepOperation } from '../../src/domain/units/activity/hibernate.ts'
import { startOperation } from '../../src/domain/units/lifecycle/run.ts'
import { stopOperation } from '../../src/domain/units/stop.ts'
import { thawOperation } from '../../src/domain/units/activity/thaw.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

/** The message of an error in our code, the kernel or the database. */
const SAID =
  'ENOENT /var/lib/berth/machines/x: relation "units" at run (operation.ts:12:3) 10.1.2.3 runc --root'

/** Operations that callers wait for. */
const operations = [
  createOperation,
  startOperation,
  thawOperation,
  sleepOperation,
  stopOperation,
  destroyOperation,
]
const places = [...operations.map(({ saga }) => saga), forkSaga].flatMap(({ name: saga, steps }) =>
  steps.flatMap(({ name }) => [`${saga}.${name}.before`, `${saga}.${name}.after`]),
)

let service: Service
let team: TestTeam
let armed: string | null = null
const met = new Set<string>()

function meet(place: string): void {
  if (place !== armed) return
  armed = null
  met.add(place)
  throw new Error(SAID)
}

beforeAll(async () => {
  service = await startService({
    failpoints: {
      effect: async (name, work) => {
        meet(`${name}.before`)
        const result = await work()
        meet(`${name}.after`)
        return result
      },
    },
  })
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

type Heard = { place: string; status: number; text: string }

/** Does everything that can be done with a unit, with a fault at this place. Returns the refusals. */
async function livesThrough(place: string): Promise<Heard[]> {
  const heard: Heard[] = []
  const ask = async (method: string, path: string, body?: unknown) => {
    const response = await service.fetch(method, path, { key: team.key, body })
    const text = await response.text()
    if (response.status >= 400) heard.push({ place, status: response.status, text })
  }
  const { id } = await makeUnit(service, team)
  const at = `/v1/units/${id}`
  armed = place
  await ask('POST', '/v1/units', { spec: { name: `made-${id.slice(-8)}`, image: 'node:22' } })
  await ask('POST', `${at}/stop`)
  await ask('POST', `${at}/start`)
  await ask('POST', `${at}/sleep`, { sleep: '5m', now: true })
  await ask('POST', `${at}/start`)
  await ask('POST', `${at}/fork`, { name: `copy-${id.slice(-8)}` })
  await ask('DELETE', at)
  return heard
}

describe('an operation step that fails', () => {
  it.each(places)('at %s reveals no internal detail to callers', async (place) => {
    for (const { status, text } of await livesThrough(place)) {
      expect([400, 409, 500, 502, 503]).toContain(status)
      for (const word of SAID.split(' ')) {
        if (word.length > 4) expect([place, text.includes(word)]).toEqual([place, false])
      }
      const { error } = JSON.parse(text) as { error: Record<string, unknown> }
      expect(error).toMatchObject({
        code: expect.any(String),
        message: expect.any(String),
        requestId: expect.any(String),
      })
    }
    const { body } = await service.call<{ units: Unit[] }>('GET', '/v1/units?all=true', { key: team.key })
    expect(JSON.stringify(body)).not.toContain('/var/lib')
  })

  it('was reached at every place', () => {
    expect(places.filter((place) => !met.has(place))).toEqual([])
  })
})
