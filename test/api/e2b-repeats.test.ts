// Creates that clients of E2B send again, and snapshots of a disk alone.

import { Sandbox, SandboxNotFoundError } from 'e2b'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

const connection = () => ({ apiKey: team.key, apiUrl: `${service.baseUrl}/e2b`, validateApiKey: false })

async function create(key: string | null, body: object = {}): Promise<{ status: number; id: string }> {
  const headers = { 'x-api-key': team.key, ...(key !== null && { 'idempotency-key': key }) }
  const answer = await service.fetch('POST', '/e2b/v2/sandboxes', {
    headers,
    body: { templateID: 'base', ...body },
  })
  const { sandboxID = '' } = (await answer.json()) as { sandboxID?: string }
  return { status: answer.status, id: sandboxID }
}

it('a create that is sent again with its key makes one sandbox, and with another body none', async () => {
  const first = await create('a-key')
  expect(first.status).toBe(201)
  expect(await create('a-key')).toEqual(first)
  expect((await create('another-key')).id).not.toBe(first.id)
  expect((await create(null)).id).not.toBe(first.id)
  expect((await create('a-key', { timeout: 60 })).status).toBe(409)
  await Sandbox.kill(first.id, connection())
  expect((await create('a-key')).status).toBe(409)
})

it('a create of a snapshot that is sent again makes one sandbox too', async () => {
  const { id } = await create(null)
  const { snapshotId } = await Sandbox.createSnapshot(id, connection())
  const made = await create('of-a-snapshot', { templateID: snapshotId })
  expect(made.status).toBe(201)
  expect(await create('of-a-snapshot', { templateID: snapshotId })).toEqual(made)
})

it('a snapshot of the disk alone has no memory to go on with', async () => {
  const { id } = await create(null)
  const snapshotOf = async (memory: boolean) => {
    const answer = await service.fetch('POST', `/e2b/sandboxes/${id}/snapshots`, {
      headers: { 'x-api-key': team.key },
      body: { memory },
    })
    expect(answer.status).toBe(201)
    const { snapshotID } = (await answer.json()) as { snapshotID: string }
    const unit = `/v1/units/unit_${snapshotID}`
    return (await service.call<{ state: string }>('GET', unit, { key: team.key })).body.state
  }
  expect([await snapshotOf(true), await snapshotOf(false)]).toEqual(['sleeping', 'stopped'])
  expect((await Sandbox.getInfo(id, connection())).state).toBe('running')
  await Sandbox.kill(id, connection())
  await expect(Sandbox.getInfo(id, connection())).rejects.toThrow(SandboxNotFoundError)
})

it('a create for which the host has no memory any more is to be sent again, and leaves nothing', async () => {
  const before = await unitsOf()
  const release = service.engine.hang('create')
  const headers = { 'x-api-key': team.key }
  const asked = service.fetch('POST', '/e2b/v2/sandboxes', { headers, body: { templateID: 'base' } })
  // There was enough when it began.
  await expect.poll(() => service.engine.calls.at(-1)?.operation).toBe('create')
  service.engine.setCapacity({ availableMemoryMb: 0 })
  service.clock.advance(60_000)
  release()
  let isOver = false
  const answered = asked.finally(() => (isOver = true))
  while (!isOver) {
    service.clock.advance(5000)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const { status, headers: told } = await answered
  expect([status, Number(told.get('retry-after'))]).toEqual([503, 10])
  service.engine.setCapacity({ availableMemoryMb: 65_536 })
  expect(await unitsOf()).toBe(before)
})

async function unitsOf(): Promise<number> {
  const { body } = await service.call<{ units: object[] }>('GET', '/v1/units', { key: team.key })
  return body.units.length
}
