// A team that strangers try to get at (reliability S1): one of everything, each with a canary in it, and all of its rows.

import type { Unit } from '../../src/contract/unit.ts'
import {
  makeInvite,
  makeKey,
  makeMember,
  makeProcess,
  makeSharedTeam,
  makeUnit,
  type TestMember,
} from './make.ts'
import type { Service } from './service.ts'

export type Victim = {
  teamId: string
  userId: string
  member: TestMember
  key: { id: string; secret: string }
  units: { running: Unit; sleeping: Unit; destroyed: Unit }
  /** Everything that has a name: ids of each kind, a name, a token. */
  names: Record<string, string>
}

/** A team with one of everything, in which every word that somebody chose has the canary in it. */
export async function makeVictim(service: Service): Promise<Victim> {
  const { id: teamId, owner } = await makeSharedTeam(service)
  const by = { cookie: owner.cookie, headers: { origin: service.baseUrl } }
  const { db } = service.app
  await service.call('PATCH', `/v1/teams/${teamId}`, { ...by, body: { name: 'Canary team' } })
  await db.updateTable('users').set({ name: 'Canary' }).where('id', '=', owner.userId).execute()
  const key = await makeKey(service, { teamId, userId: owner.userId })
  await db.updateTable('credentials').set({ name: 'canary key' }).where('id', '=', key.id).execute()
  const member = await makeMember(service, teamId, 'member')
  const as = { key: key.secret }
  const make = async (name: string) =>
    await makeUnit(service, as, {
      name: `canary-${name}`,
      image: 'canary/image:1',
      env: { VALUE: 'canary value' },
    })
  const [running, sleeping, destroyed] = [await make('running'), await make('sleeping'), await make('gone')]
  const sleep = { ...as, body: { sleep: '1m', now: true } }
  await service.call('POST', `/v1/units/${sleeping.id}/sleep`, sleep)
  await service.call('DELETE', `/v1/units/${destroyed.id}`, as)
  await service.call('POST', `/v1/units/${running.id}/expose`, { ...as, body: { port: 8080 } })
  const process = await makeProcess(service, as, running.id, {
    cmd: ['sh', '-c', 'echo canary; sleep infinity'],
  })
  const invite = await makeInvite(service, { teamId, cookie: owner.cookie, email: 'canary@example.test' })
  const endpoint = await db
    .selectFrom('endpoints')
    .select('id')
    .where('team_id', '=', teamId)
    .executeTakeFirst()
  const audited = await db.selectFrom('audit').select('id').where('team_id', '=', teamId).executeTakeFirst()
  return {
    teamId,
    userId: owner.userId,
    member,
    key,
    units: { running, sleeping, destroyed },
    names: {
      'a running unit': running.id,
      'a sleeping unit': sleeping.id,
      'a destroyed unit': destroyed.id,
      'a process': process,
      'a stack': running.stackId,
      'the stack of a destroyed unit': destroyed.stackId,
      'the name of a stack': running.name,
      'a key': key.id,
      'a team': teamId,
      'an owner': owner.userId,
      'a member': member.userId,
      'an invitation': invite.id,
      'the token of an invitation': invite.token,
      'an endpoint': endpoint?.id ?? '',
      'an audit event': audited?.id ?? '',
    },
  }
}

/** Every row that is the team's, times of use and all. */
export async function rowsOfTeam(service: Service, teamId: string): Promise<unknown> {
  const { db } = service.app
  const ofTeam = async (table: 'units' | 'stacks' | 'endpoints' | 'memberships' | 'invites') =>
    await db.selectFrom(table).selectAll().where('team_id', '=', teamId).orderBy(sqlOrder(table)).execute()
  return {
    teams: await db.selectFrom('teams').selectAll().where('id', '=', teamId).execute(),
    credentials: await db
      .selectFrom('credentials')
      .selectAll()
      .where('team_id', '=', teamId)
      .orderBy('id')
      .execute(),
    units: await ofTeam('units'),
    stacks: await ofTeam('stacks'),
    endpoints: await ofTeam('endpoints'),
    memberships: await ofTeam('memberships'),
    invites: await ofTeam('invites'),
    charges: await db
      .selectFrom('charges')
      .selectAll()
      .where('team_id', '=', teamId)
      .orderBy('meter_id')
      .execute(),
    audited: await db.selectFrom('audit').select('id').where('team_id', '=', teamId).orderBy('id').execute(),
  }
}

const sqlOrder = (table: string) => (table === 'memberships' ? 'user_id' : 'id') as 'team_id'
