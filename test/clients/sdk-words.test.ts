// What a person sees of the SDK: one line for an object, lists that can be awaited, and errors in the words of the caller.

import { inspect } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Berth } from '../../packages/sdk/src/index.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let berth: Berth
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  berth = new Berth({ url: service.baseUrl, apiKey: team.key })
})
afterAll(async () => await service.close())

it('a client, a unit, a stack and a process are printed in one line each, without the key', async () => {
  const unit = await berth.units.create({ image: 'node:22', name: 'web', stack: 'shop' })
  const process = await unit.processes.start(['sleep', '60'])
  const stack = (await berth.stacks.list())[0]
  expect(inspect(berth)).toBe(`Berth(${service.baseUrl})`)
  expect(inspect(unit)).toMatch(/^Unit\(web, running, \S*node:22, unit_\w+\)$/)
  expect(inspect(stack)).toMatch(/^Stack\(shop, 1 unit, stack_\w+\)$/)
  expect(inspect(process)).toMatch(/^Process\(sleep 60, running, \w+\)$/)
})

it('a list that is awaited is an array of all of its items', async () => {
  for (const name of ['one', 'two', 'three'])
    await berth.units.create({ image: 'node:22', name, stack: 'many' })
  const units = await berth.units.list({ stack: 'many', limit: 1 })
  expect(units.map(({ name }) => name).toSorted()).toEqual(['one', 'three', 'two'])
  await expect(berth.units.list({ stack: 'nothing-of-that-name', limit: 0 })).rejects.toMatchObject({
    code: 'validation',
  })
})

it('an error names what the caller wrote, and a wrong key says where keys are made', async () => {
  const asked = { image: 'node:22', size: 'huge' as 'small' }
  await expect(berth.units.create(asked)).rejects.toMatchObject({
    code: 'validation',
    message: expect.stringMatching(/^size: must be one of "nano", .*"large"$/) as string,
  })
  await expect(berth.units.get('shop-web')).rejects.toMatchObject({
    code: 'not_found',
    message: 'There is no unit "shop-web". An id is asked for here; units.find("shop-web") takes a name.',
  })
  const stranger = new Berth({ url: service.baseUrl, apiKey: 'berth_live_wrong' })
  await expect(stranger.quota()).rejects.toMatchObject({
    code: 'unauthorized',
    message: expect.stringMatching(/does not know this API key.*under Agents.*BERTH_API_KEY/) as string,
  })
})

it('a command that ran out of its time says so in its standard error', async () => {
  const unit = await berth.units.create({ image: 'node:22', name: 'slow' })
  const { timedOut, stderr } = await unit.exec(['sleep', 'infinity'], { timeoutMs: 50 })
  expect(timedOut).toBe(true)
  expect(stderr).toMatch(
    /berth: the command ran out of its 0\.05 s and was killed; give it more with timeoutMs\n$/,
  )
})
