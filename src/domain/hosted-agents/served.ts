// What the server's controllers serve: every environment that is on, with its credentials. For src/agents alone.

import type { App } from '../../app.ts'
import {
  type HostedEnvironmentsTable,
  type HostedPlan,
  listHostedEnvironmentsOn,
} from '../../store/hosted-agents.ts'
import { withAll } from './to-hosted.ts'
import { openCredentials } from './sealed.ts'

export type Served = {
  id: string
  team_id: string
  version: number
  vendor: HostedEnvironmentsTable['vendor']
  environment: string
  environmentKey: string
  /** The key itself. */
  token: string
  plan: HostedPlan
}

/** Those that are on. `version` changes with each of them. */
export async function listOn(app: App): Promise<HostedEnvironmentsTable[]> {
  return await listHostedEnvironmentsOn(app.db)
}

export function openServed(app: App, row: HostedEnvironmentsTable): Served {
  const { id, team_id, version, vendor, environment, plan } = row
  return {
    id,
    team_id,
    version,
    vendor,
    environment,
    plan: withAll(plan),
    ...openCredentials(app.secretKey, row),
  }
}
