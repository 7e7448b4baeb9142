// POST /v1/hosted-agents: an environment whose sessions work in units here from now on, by a key of its own whose policy bounds
// them. Nobody is told that key: it is sealed beside the vendor's credential.

import type { App } from '../../app.ts'
import { conflict, quotaExceeded } from '../../contract/errors.ts'
import type { HostedChanged, HostedCreate } from '../../contract/hosted-agents.ts'
import { limits } from '../../contract/limits.ts'
import { newId } from '../../lib/ids.ts'
import { insertHostedEnvironment, listHostedEnvironments } from '../../store/hosted-agents.ts'
import { checkPolicy, insertKeyOfTeam } from '../agents/create-key.ts'
import { authorize } from '../authorization/authorize.ts'
import type { Caller } from '../credentials/caller.ts'
import type { Once } from '../idempotency/once.ts'
import { inLiveTeamTransaction } from '../transactions/transactions.ts'
import { checkSource } from './check-source.ts'
import { getHosted } from './find.ts'
import { sealCredential } from './sealed.ts'
import { toHosted } from './to-hosted.ts'

/** Throws `conflict` if the team has the environment already, and `quota_exceeded` without a seat for its key. */
export async function createHosted(
  app: App,
  caller: Caller,
  { vendor, environment, environmentKey, policy, ...plan }: HostedCreate,
  once: Once | null,
): Promise<HostedChanged> {
  authorize(caller, 'hosted.create')
  const { teamId, userId } = caller
  const id = newId('hostedEnvironment')
  await checkPolicy(app, caller, policy)
  await checkSource(app, caller, plan, policy)
  return await inLiveTeamTransaction(app, { teamId, once }, async (db) => {
    const all = await listHostedEnvironments(db, teamId)
    if (all.some((each) => each.vendor === vendor && each.environment === environment))
      throw conflict(`The team has the environment ${environment} already.`)
    checkRoom(all.length)
    const key = await insertKeyOfTeam(app, db, caller, {
      name: `${vendor} ${environment}`.slice(0, 80),
      policy,
    })
    await insertHostedEnvironment(db, {
      id,
      team_id: teamId,
      vendor,
      environment,
      credential_id: key.id,
      sealed_key: sealCredential(app.secretKey, 'key', { teamId, id }, environmentKey),
      sealed_token: sealCredential(app.secretKey, 'token', { teamId, id }, key.secret),
      plan,
      is_on: true,
      version: 0,
      state: 'starting',
      note: null,
      noted_at: null,
      created_by: userId,
      created_at: app.clock.now(),
    })
    const created = { environment: toHosted(await getHosted({ ...app, db }, caller, id)) }
    await once?.keep(db, created)
    return created
  })
}

function checkRoom(used: number): void {
  const max = limits.hostedEnvironments
  if (used < max) return
  throw quotaExceeded(`The team has ${used} environments, and may have ${max}: delete one first.`, {
    field: 'hostedEnvironments',
    used,
    max,
  })
}
