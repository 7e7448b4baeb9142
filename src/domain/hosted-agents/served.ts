// What the server's controllers serve: every environment that is on, with its credentials. For src/agents alone.

import type { App } from '../../app.ts'
import { type HostedPlan, listHostedEnvironmentsOn } from '../../store/hosted-agents.ts'
import { openCredentials } from './sealed.ts'

export type Served = {
  id: string
  team_id: string
  version: number
  environment: string
  environmentKey: string
  /** The key itself. */
  token: string
  plan: HostedPlan
}

export async function listServed(app: App): Promise<Served[]> {
  const rows = await listHostedEnvironmentsOn(app.db)
  return rows.map(({ id, team_id, version, environment, plan, ...row }) => {
    const sealed = openCredentials(app.secretKey, { id, team_id, ...row })
    return { id, team_id, version, environment, plan, ...sealed }
  })
}
