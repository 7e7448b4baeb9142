// The page of hosts: for the people who operate this Berth, and nobody else.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { newId } from '../../src/lib/ids.ts'
import { meetLocalHost, setHostState } from '../../src/store/hosts.ts'
import { makeSession, makeTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service

beforeAll(async () => {
  service = await startService()
})
afterAll(async () => await service.close())

const open = async (cookie?: string) =>
  await fetch(`${service.baseUrl}/hosts`, {
    headers: { accept: 'text/html', ...(cookie === undefined ? {} : { cookie }) },
  })

it('shows an operator each host with its units, and what to do about it', async () => {
  const { db, clock } = service.app
  const team = await makeTeam(service)
  await db.updateTable('users').set({ admin: true }).where('id', '=', team.userId).execute()
  await meetLocalHost(db, { instance: 'east', name: '<east>', newId: newId('host') })
  const id = (
    await db.selectFrom('hosts').select('id').where('instance', '=', 'east').executeTakeFirstOrThrow()
  ).id
  await setHostState(db, { id, from: ['ready'], to: 'lost', at: clock.now() })
  const response = await open(await makeSession(service, team))
  expect(response.status).toBe(200)
  const html = await response.text()
  expect(html).toContain('<h2>&#60;east&#62;: lost</h2>\n<p>0 units · ')
  expect(html).toContain('What to do: npm run hosts -- remove &#60;east&#62;')
})

it('is not there for anybody else', async () => {
  expect((await open()).status).toBe(401)
  const team = await makeTeam(service)
  const response = await open(await makeSession(service, team))
  expect(response.status).toBe(404)
  expect(await response.text()).not.toContain('What to do')
})
