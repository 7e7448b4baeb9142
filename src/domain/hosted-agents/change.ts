// PATCH /v1/hosted-agents/{id}: on or off, another credential, or how its units are made. Another controller follows with that.

import type { App } from '../../app.ts'
import type { HostedChange, HostedChanged } from '../../contract/hosted-agents.ts'
import { changeHostedEnvironment } from '../../store/hosted-agents.ts'
import { findAgent } from '../../store/credentials.ts'
import { authorize } from '../authorization/authorize.ts'
import type { Caller } from '../credentials/caller.ts'
import { completePolicy } from '../credentials/complete-policy.ts'
import { tellChanged } from '../transactions/changes.ts'
import { checkSource } from './check-source.ts'
import { getHosted } from './find.ts'
import { sealCredential } from './sealed.ts'
import { toHosted, withAll } from './to-hosted.ts'

export async function changeHosted(
  app: App,
  caller: Caller,
  { id, on, environmentKey, ...plan }: { id: string } & HostedChange,
): Promise<HostedChanged> {
  const { teamId } = caller
  const before = await getHosted(app, caller, id)
  authorize(caller, 'hosted.change', { createdBy: before.created_by })
  const asked = Object.fromEntries(Object.entries(plan).filter(([, value]) => value !== undefined))
  const after = withAll({ ...before.plan, ...asked })
  if (after.copyOf !== withAll(before.plan).copyOf || after.sleep !== before.plan.sleep) {
    const key = await findAgent(app.db, { teamId, id: before.credential_id, now: app.clock.now() })
    if (key) await checkSource(app, caller, after, completePolicy(key.policy))
  }
  await changeHostedEnvironment(app.db, {
    teamId,
    id,
    isOn: on ?? before.is_on,
    plan: after,
    ...(environmentKey !== undefined && {
      sealed_key: sealCredential(app.secretKey, 'key', { teamId, id }, environmentKey),
    }),
  })
  tellChanged(app, teamId)
  return { environment: toHosted(await getHosted(app, caller, id)) }
}
