// Things a test needs and does not test: teams, keys, sessions, units.

import type { Policy } from '../../src/contract/policy.ts'
import type { HostedChanged } from '../../src/contract/hosted-agents.ts'
import type { InviteCreated } from '../../src/contract/invite.ts'
import type { TeamAnswer } from '../../src/contract/team.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { createKey } from '../../src/domain/credentials/keys.ts'
import { createSignInLink, signIn } from '../../src/domain/credentials/sign-in.ts'
import { unrestrictedPolicy } from '../../src/domain/credentials/unrestricted-policy.ts'
import { beginFamily } from '../../src/domain/oauth/families.ts'
import { createAccount } from '../../src/domain/accounts/create.ts'
import { newId } from '../../src/lib/ids.ts'
import { type Clock, HOUR, MINUTE } from '../../src/lib/clock.ts'
import { insertConnection, revokeCredential } from '../../src/store/credentials.ts'
import { deleteMember, insertMember } from '../../src/store/members.ts'
import { revokeFamily } from '../../src/store/oauth-families.ts'
import { changeTeam, type Role } from '../../src/store/teams.ts'
import type { Service } from './service.ts'

export type TestTeam = { userId: string; teamId: string; email: string; key: string; keyId: string }

let count = 0

/** A person with a personal team and a key that may do everything the policy says. */
export async function makeTeam(
  { app }: { app: { db: Service['app']['db']; clock: Clock } },
  policy: Partial<Policy> = {},
): Promise<TestTeam> {
  const email = `person-${count++}@example.test`
  const createdAt = app.clock.now()
  const { userId, teamId } = await app.db.transaction().execute((transaction) =>
    createAccount(transaction, {
      email,
      name: 'Person',
      admin: false,
      plan: 'team',
      paysAsItGoes: true,
      freeCreditsCents: 0,
      createdAt,
    }),
  )
  const key = await makeKey({ app }, { teamId, userId, policy })
  return { userId, teamId, email, key: key.secret, keyId: key.id }
}

export async function makeKey(
  { app }: { app: { db: Service['app']['db']; clock: Clock } },
  { teamId, userId, policy = {} }: { teamId: string; userId: string; policy?: Partial<Policy> },
): Promise<{ id: string; secret: string }> {
  return await createKey(app.db, {
    teamId,
    name: 'test key',
    policy: { ...unrestrictedPolicy, ...policy },
    createdBy: userId,
    createdAt: app.clock.now(),
  })
}

/** An environment of hosted agents, which nothing serves in tests; answers its id. */
export async function makeHosted(
  service: Service,
  { teamId, cookie }: { teamId: string; cookie: string },
  environment: string,
): Promise<string> {
  const { body } = await service.call<HostedChanged>('POST', '/v1/hosted-agents', {
    cookie,
    headers: { origin: service.baseUrl, 'x-berth-team': teamId },
    body: { environment, environmentKey: 'sk-1' },
  })
  return body.environment.id
}

/** Signs a person in; answers the value of the Cookie header. */
export async function makeSession({ app }: Service, { email }: { email: string }): Promise<string> {
  const link = await createSignInLink(app, email)
  const { token } = await signIn(app, link.token)
  return `berth_session=${token}`
}

/** A program that somebody has connected; answers its access token. */
export async function insertConnectedClient(
  service: Service,
  who: { teamId: string; userId: string },
): Promise<string> {
  return (await makeClient(service, who)).token
}

/** The same with all that can be revoked of it. `at`: when it got its tokens, whose access token is good for an hour. */
export async function makeClient(
  { app }: Service,
  {
    teamId,
    userId,
    policy = {},
    at = app.clock.now(),
  }: { teamId: string; userId: string; policy?: Partial<Policy>; at?: Date },
): Promise<{ agentId: string; familyId: string; token: string }> {
  const [agentId, clientId] = [newId('credential'), newId('oauthClient')]
  await insertConnection(app.db, {
    id: agentId,
    teamId,
    name: 'a client',
    policy: { ...unrestrictedPolicy, ...policy },
    createdBy: userId,
    client: { id: clientId, name: 'a client', uri: null, icon: null },
    clientKey: clientId,
    at,
  })
  const code = 'a code'
  const { id, pair } = await beginFamily(app, app.db, { credentialId: agentId, clientId, code, at })
  return { agentId, familyId: id, token: pair.access.token }
}

/** Access tokens that were good once, by why they are no more. */
export async function makeEndedTokens(
  service: Service,
  { teamId, userId }: { teamId: string; userId: string },
): Promise<Record<string, string>> {
  const { db, clock } = service.app
  const past = new Date(clock.now().getTime() - MINUTE)
  const who = { teamId, userId }
  const family = await makeClient(service, who)
  await revokeFamily(db, { id: family.familyId, at: past })
  const agent = await makeClient(service, who)
  await revokeCredential(db, { teamId, id: agent.agentId, at: past })
  const leaver = await makeTeam(service)
  await insertMember(db, { teamId, userId: leaver.userId, role: 'owner', at: past })
  const left = await makeClient(service, { teamId, userId: leaver.userId })
  await deleteMember(db, { teamId, userId: leaver.userId })
  return {
    'an access token that has expired': (
      await makeClient(service, { ...who, at: new Date(past.getTime() - HOUR) })
    ).token,
    'an access token that was given back': family.token,
    'an access token of a revoked agent': agent.token,
    'an access token of an agent that has expired': (
      await makeClient(service, { ...who, policy: { expiresAt: past.toISOString() } })
    ).token,
    'an access token of a person who left the team': left.token,
  }
}

export type TestMember = { userId: string; email: string; cookie: string }

/** A second person with their own account, who is a member of the team and signed in. */
export async function makeMember(service: Service, teamId: string, role: Role): Promise<TestMember> {
  const { userId, email } = await makeTeam(service)
  const at = service.app.clock.now()
  await insertMember(service.app.db, { teamId, userId, role, at })
  return { userId, email, cookie: await makeSession(service, { email }) }
}

/** A team that is no one's personal one, with its owner signed in; on plan `team`, and paying as it goes. */
export async function makeSharedTeam(service: Service): Promise<{ id: string; owner: TestMember }> {
  const { userId, email } = await makeTeam(service)
  const cookie = await makeSession(service, { email })
  const made = await service.call<TeamAnswer>('POST', '/v1/teams', {
    cookie,
    headers: { origin: service.baseUrl },
    body: { name: 'Shared' },
  })
  const { id } = made.body.team
  await changeTeam(service.app.db, { id, paysAsItGoes: true })
  return { id, owner: { userId, email, cookie } }
}

/** An invitation somebody sends, with the token of its mail. */
export async function makeInvite(
  service: Service,
  { teamId, cookie, email }: { teamId: string; cookie: string; email: string },
): Promise<{ id: string; token: string }> {
  const sent = { cookie, headers: { origin: service.baseUrl }, body: { email } }
  const made = await service.call<InviteCreated>('POST', `/v1/teams/${teamId}/invites`, sent)
  return { id: made.body.invite.id, token: await inviteTokenFor(service, email) }
}

/** The token in the newest mail to an address. */
export async function inviteTokenFor(service: Service, email: string): Promise<string> {
  const mail = (await service.mailTo(email)).at(-1)
  return /\/invites\/(\S+)/.exec(mail?.text ?? '')?.[1] ?? ''
}

/** A running unit, made over the API. */
export async function makeUnit(
  service: Service,
  { key }: { key: string },
  spec: Record<string, unknown> = {},
): Promise<Unit> {
  const body = { spec: { name: `unit-${count++}`, image: 'node:22', ...spec } }
  const answer = await service.call<{ units?: Unit[] }>('POST', '/v1/units', { key, body })
  const unit = answer.body.units?.[0]
  if (answer.status !== 201 || !unit) throw new Error(`no unit was made: ${JSON.stringify(answer.body)}`)
  return unit
}

/** The id of a background process of the unit's, which runs until it is ended. */
export async function makeProcess(
  service: Service,
  { key }: { key: string },
  unitId: string,
  body: object = { cmd: ['sleep', 'infinity'], takesInput: true },
): Promise<string> {
  const made = await service.call<{ id: string }>('POST', `/v1/units/${unitId}/processes`, { key, body })
  if (made.status !== 201) throw new Error(`no process: ${JSON.stringify(made.body)}`)
  return made.body.id
}
