// How much disk the units of a team may be promised by its plan (decisions/disks-and-logs.md).

import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Quota } from '../../src/contract/quota.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { makeTeam, makeUnit } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(async () => await service.close())

/** A team on the smallest plan, with 600 GB. */
async function makeHobbyTeam() {
  const team = await makeTeam(service)
  await service.app.db.updateTable('teams').set({ plan: 'hobby' }).where('id', '=', team.teamId).execute()
  const call = async (method: string, path: string, body: object | null = null) =>
    await service.call<{ units: Unit[] } & { error?: { code: string; message: string } }>(method, path, {
      key: team.key,
      ...(body === null ? {} : { body }),
    })
  return {
    ...team,
    call,
    create: async (name: string, gb: number) =>
      await call('POST', '/v1/units', {
        spec: { name, image: 'node:22', size: 'nano', volume: { mount: '/data', gb } },
      }),
    promisedGb: async () =>
      (await service.call<Quota>('GET', '/v1/quota', { key: team.key })).body.disk.promisedGb,
  }
}

test('a file for which there is no room is refused with 409, and names the full disk', async () => {
  const team = await makeHobbyTeam()
  const { id } = (await team.create('db', 3)).body.units[0] as Unit
  const cases = [
    ['/data/file', 'volume is full (3 GB)'],
    ['/database', 'disk is full (2 GB)'],
  ] as const
  for (const [path, said] of cases) {
    service.engine.fail('writeFile', 'disk_full')
    const { status, body } = await team.call('POST', `/v1/units/${id}/files`, { path, contentBase64: 'eA==' })
    expect(status).toBe(409)
    expect(body.error).toMatchObject({
      code: 'invalid_state',
      message: expect.stringContaining(said),
      details: { reason: 'disk_full' },
    })
  }
})

test('the units of a team may be promised as much disk as its plan allows, stopped ones included', async () => {
  const team = await makeHobbyTeam()
  const made = await team.create('large', 496)
  expect(made.status).toBe(201)
  const { id } = made.body.units[0] as Unit
  expect((await team.call('POST', `/v1/units/${id}/stop`)).status).toBe(200)
  expect(await team.promisedGb()).toBe(498)

  expect((await team.create('exact', 100)).status).toBe(201)
  expect(await team.promisedGb()).toBe(600)
  const refused = await team.create('more', 1)
  expect([refused.status, refused.body]).toMatchObject([
    402,
    { error: { code: 'quota_exceeded', details: { field: 'disk', usedGb: 600, maxGb: 600, askedGb: 3 } } },
  ])
  expect((await team.call('POST', `/v1/units/${id}/fork`, {})).status).toBe(402)
  expect((await makeHobbyTeam().then((other) => other.create('own', 500))).status).toBe(201)

  await team.call('DELETE', `/v1/units/${id}`)
  expect(await team.promisedGb()).toBe(102)
  expect((await team.create('more', 1)).status).toBe(201)
})

test('concurrent creates are promised no more disk than sequential ones', async () => {
  const team = await makeHobbyTeam()
  const names = Array.from({ length: 8 }, (_, index) => `unit-${index}`)
  const answers = await Promise.all(names.map((name) => team.create(name, 198)))
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(3)
  expect(answers.filter(({ status }) => status === 402)).toHaveLength(5)
})

test('a volume larger than the share of a team on this host is refused', async () => {
  const team = await makeHobbyTeam()
  service.engine.setCapacity({ teamDiskGb: 8 })
  try {
    const refused = await team.create('wide', 9)
    expect([refused.status, refused.body]).toMatchObject([
      402,
      { error: { code: 'quota_exceeded', details: { field: 'volume', maxGb: 8, askedGb: 9 } } },
    ])
    expect((await team.create('fits', 8)).status).toBe(201)
    // The promised size of a disk is more than most units use of it.
    const unit = await makeUnit(service, team, { name: 'large', size: 'large' })
    expect(unit.state).toBe('running')
  } finally {
    service.engine.setCapacity({ teamDiskGb: 10_000 })
  }
})
