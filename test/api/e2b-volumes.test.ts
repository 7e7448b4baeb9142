// Volumes by the official client of E2B, and what such a client would not send.

import { Sandbox, Volume, VolumeNotFoundError, VolumePathNotFoundError } from 'e2b'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let other: TestTeam
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  other = await makeTeam(service)
})
afterAll(async () => await service.close())

const connection = (key = team.key) => ({
  apiKey: key,
  apiUrl: `${service.baseUrl}/e2b`,
  validateApiKey: false,
})
const content = () => ({ apiUrl: `${service.baseUrl}/e2b` })
const ask = async (method: string, path: string, token: string) =>
  await fetch(`${service.baseUrl}/e2b${path}`, { method, headers: { authorization: `Bearer ${token}` } })

it('a volume is made once by its name, found, listed, and destroyed', async () => {
  const made = await Volume.create('my-volume', connection())
  expect(made).toMatchObject({ name: 'my-volume', volumeId: expect.stringMatching(/^[0-9a-f]{32}$/) })
  await expect(Volume.create('my-volume', connection())).rejects.toThrow(/There is a volume "my-volume"/)
  await expect(Volume.create('no name!', connection())).rejects.toThrow(/must be a name/)
  const found = await Volume.connect(made.volumeId, connection())
  expect({ name: found.name, token: found.token }).toEqual({ name: 'my-volume', token: made.token })
  const shown = { volumeId: made.volumeId, name: 'my-volume' }
  expect(await Volume.list(connection())).toEqual([shown])
  expect(await Volume.getInfo(made.volumeId, connection())).toMatchObject(shown)
  expect(await Sandbox.list(connection()).nextItems()).toEqual([])
  await expect(Sandbox.getInfo(made.volumeId, connection())).rejects.toThrow(/not found/i)
  expect(await Volume.destroy(made.volumeId, connection())).toBe(true)
  expect(await Volume.destroy(made.volumeId, connection())).toBe(false)
  await expect(Volume.getInfo(made.volumeId, connection())).rejects.toThrow(VolumeNotFoundError)
  await expect(found.readFile('/a', content())).rejects.toThrow(VolumePathNotFoundError)
})

it('a volume of another team is not found, and its token is for it alone', async () => {
  const mine = await Volume.create('mine', connection())
  const theirs = await Volume.create('mine', connection(other.key))
  const sandbox = await Sandbox.create(connection())
  await expect(Volume.connect(theirs.volumeId, connection())).rejects.toThrow(VolumeNotFoundError)
  expect(await Volume.destroy(theirs.volumeId, connection())).toBe(false)
  const path = `/volumecontent/${theirs.volumeId}/path?path=%2F`
  expect((await ask('GET', path, mine.token)).status).toBe(401)
  expect((await ask('GET', path, team.key)).status).toBe(401)
  expect((await ask('GET', `/volumes`, mine.token)).status).toBe(401)
  const { sandboxId } = sandbox
  const access = await sandbox.getInfo()
  expect(access.sandboxId).toBe(sandboxId)
  const token = (sandbox as unknown as { envdAccessToken: string }).envdAccessToken
  expect((await ask('GET', `/volumecontent/${sandboxId}/path?path=%2F`, token)).status).toBe(404)
  await sandbox.kill()
})

it.each([
  ['GET', '/volumecontent/ID/nothing', 404],
  ['PUT', '/volumecontent/ID/path?path=/a', 404],
  ['GET', '/volumecontent/x/path?path=/a', 404],
  ['GET', '/volumecontent/ID/path?path=%00', 400],
  ['DELETE', '/volumecontent/ID/path?path=/..', 400],
  ['GET', '/volumecontent/ID/dir?path=/&depth=0', 400],
  ['POST', '/volumecontent/ID/dir?path=/d&mode=99999', 400],
  ['POST', '/volumecontent/ID/dir?path=/d&uid=-1', 400],
])('%s %s is refused with %i', async (method, path, status) => {
  const { body } = await service.call<{ volumeID: string; token: string }>('POST', '/e2b/volumes', {
    headers: { 'x-api-key': team.key },
    body: { name: `of-${crypto.randomUUID()}` },
  })
  const answer = await ask(method, path.replace('ID', body.volumeID), body.token)
  expect(answer.status).toBe(status)
  expect(await answer.json()).toEqual({ code: status, message: expect.any(String) })
  const headers = { 'x-api-key': team.key }
  expect((await service.fetch('DELETE', `/e2b/volumes/${body.volumeID}`, { headers })).status).toBe(204)
})
