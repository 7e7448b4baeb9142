// The operator’s command for teams and users: what it changes, what it refuses, and what it logs.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeKey, makeSession, makeSharedTeam, makeTeam } from '../../test/support/make.ts'
import { type Service, startService } from '../../test/support/service.ts'
import { parseCommand, perform } from './team.ts'

let service: Service

beforeAll(async () => {
  service = await startService()
})
afterAll(async () => await service.close())

async function run(...args: string[]): Promise<string[]> {
  const command = parseCommand(args)
  if (command.kind === 'help') return ['help']
  return await perform({ db: service.app.db, log: service.app.log }, command)
}

describe('npm run team', () => {
  it('lists all existing teams with their owners', async () => {
    const kept = await makeSharedTeam(service)
    const deleted = await makeSharedTeam(service)
    const headers = { origin: service.baseUrl }
    await service.call('DELETE', `/v1/teams/${deleted.id}`, { cookie: deleted.owner.cookie, headers })
    const [head, ...rows] = await run('list')
    expect(head).toMatch(/^team +plan +pays as it goes +members +owners +name$/)
    const row = rows.find((each) => each.startsWith(kept.id))
    expect(row?.split(/ {2,}/)).toEqual([kept.id, 'team', 'yes', '1', kept.owner.email, 'Shared'])
    expect(rows.join('\n')).not.toContain(deleted.id)
  })

  it('sets the plan and payment of a team by id or slug, with effect from the next API call', async () => {
    const { teamId, userId } = await makeTeam(service)
    const { secret: key } = await makeKey(service, { teamId, userId })
    const forever = (name: string) => ({ spec: { name, image: 'node:22', sleep: 'never' } })
    const create = async (name: string) =>
      (await service.call('POST', '/v1/units', { key, body: forever(name) })).status
    expect(await create('one')).toBe(201)
    await run('set', teamId, '--plan', 'hobby')
    expect(await create('two')).toBe(403)
    await run('set', teamId.replace('_', '-'), '--plan=pro')
    expect(await create('two')).toBe(201)
    const [, row] = await run('set', teamId, '--pays-as-it-goes', 'no')
    expect(row?.split(/ {2,}/).slice(0, 3)).toEqual([teamId, 'pro', 'no'])
    expect(await create('three')).toBe(402)
    expect(service.logged.join('')).toMatch(`"teamId":"${teamId}","plan":"hobby"`)
  })

  it('grants and revokes admin rights by an email address in any case', async () => {
    const person = await makeTeam(service)
    const cookie = await makeSession(service, person)
    const isAdmin = async () => (await service.call('GET', '/v1/me', { cookie })).body
    await run('set-user', person.email.toUpperCase(), '--admin', 'yes')
    expect(await isAdmin()).toMatchObject({ user: { admin: true } })
    await run('set-user', person.email, '--admin', 'no')
    expect(await isAdmin()).toMatchObject({ user: { admin: false } })
  })

  it('gives the own team of a new admin the plan of the first account’s team, and raises no other plan', async () => {
    const person = await makeTeam(service)
    await run('set', person.teamId, '--plan', 'hobby')
    const cookie = await makeSession(service, person)
    const headers = { origin: service.baseUrl }
    const invite = async () => {
      const to = { email: `guest-of-${person.userId}@example.test` }
      return (await service.call('POST', `/v1/teams/${person.teamId}/invites`, { cookie, headers, body: to }))
        .status
    }
    expect(await invite()).toBe(403)
    expect(await run('set-user', person.email, '--admin', 'no')).toHaveLength(1)
    expect(await invite()).toBe(403)
    expect((await run('set-user', person.email, '--admin', 'yes')).join('\n')).toMatch(
      /is an admin now\.\nTheir own team, team-[0-9a-f]+, has the plan team now/,
    )
    expect(await invite()).toBe(201)
    await run('set', person.teamId, '--plan', 'pro')
    expect(await run('set-user', person.email, '--admin', 'yes')).toHaveLength(1)
    expect((await run('list')).find((row) => row.startsWith(person.teamId))).toMatch(/ pro /)
  })

  it('replaces terminal control characters in its output', async () => {
    const { teamId } = await makeTeam(service)
    const { db } = service.app
    await db.updateTable('teams').set({ name: 'a\u001b[2Jb' }).where('id', '=', teamId).execute()
    expect((await run('list')).find((row) => row.startsWith(teamId))).toMatch(/a\?\[2Jb$/)
  })

  it.each([[[]], [['--help']], [['set', '-h']]])('prints its help for %j', async (args) => {
    expect(await run(...args)).toEqual(['help'])
  })

  it.each([
    [['remove', 'x'], /there is no "remove"/],
    [['list', 'x'], /list takes nothing else/],
    [['set'], /which team/],
    [['set', 'x'], /--plan or --pays-as-it-goes/],
    [['set', 'x', 'y', '--plan', 'pro'], /"y" is not expected/],
    [['set', 'x', '--plan', 'gold'], /hobby, pro, team, not "gold"/],
    [['set', 'x', '--pays-as-it-goes', 'maybe'], /yes or no, not "maybe"/],
    [['set', 'x', '--admin', 'yes'], /use set-user/],
    [['set', 'nothing', '--plan', 'pro'], /There is no team "nothing"/],
    [['set-user'], /name the address of an account/],
    [['set-user', 'a@example.test'], /--admin yes or --admin no/],
    [['set-user', 'a@example.test', '--plan', 'pro'], /use set/],
    [['set-user', 'nobody@example.test', '--admin', 'yes'], /No account has the address/],
    [['set', 'x', '--colour', 'red'], /--colour/],
  ])('refuses %j with an explanation', async (args, message) => {
    await expect(run(...args)).rejects.toThrow(message)
  })
})
