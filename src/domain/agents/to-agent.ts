import type { Agent } from '../../contract/agent.ts'
import { agentOf, agentTitled } from '../../contract/known-agents.ts'
import { policySchema } from '../../contract/policy.ts'
import { toCents } from '../../lib/money.ts'
import type { AgentRecord } from '../../store/credentials.ts'

export function toAgent(record: AgentRecord): Agent {
  const { created_by: creator, creator_name: name, creator_email: email } = record
  const agent = agentOf(record.user_agent) ?? agentTitled(record.client?.name ?? null)
  return {
    id: record.id,
    kind: record.kind,
    name: record.name,
    prefix: record.prefix,
    policy: policySchema.parse(record.policy),
    client: record.client,
    agent: agent && { ...agent, userAgent: record.user_agent },
    createdBy: creator === null ? null : { name, email },
    createdAt: record.created_at.toISOString(),
    connectedAt: record.connected_at?.toISOString() ?? null,
    lastUsedAt: record.last_used_at?.toISOString() ?? null,
    spentTodayCents: toCents(record.spent_today),
    liveUnits: Number(record.live_units),
    revokedAt: record.revoked_at?.toISOString() ?? null,
  }
}
