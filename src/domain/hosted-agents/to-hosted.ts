import type { HostedEnvironment, HostedSession } from '../../contract/hosted-agents.ts'
import { toCents } from '../../lib/money.ts'
import type { HostedPlan, HostedRecord, HostedSessionRecord } from '../../store/hosted-agents.ts'

export function toHosted(record: HostedRecord): HostedEnvironment {
  return {
    id: record.id,
    vendor: record.vendor,
    environment: record.environment,
    on: record.is_on,
    state: record.state,
    note: record.note,
    notedAt: record.noted_at?.toISOString() ?? null,
    key: { id: record.credential_id, name: record.key_name },
    ...withAll(record.plan),
    working: Number(record.working),
    createdAt: record.created_at.toISOString(),
  }
}

/** Those of before have no `copyOf`. */
export function withAll(plan: HostedPlan): HostedPlan {
  return { ...plan, copyOf: plan.copyOf ?? null }
}

export function toHostedSession(record: HostedSessionRecord): HostedSession {
  const { unit_id: id, unit_name: name, unit_state: state } = record
  return {
    id: record.session,
    state: record.state,
    note: record.note,
    turns: record.turns,
    unit: id === null || name === null || state === null ? null : { id, name, state },
    costCents: toCents(record.cost_nano_cents ?? 0n),
    beganAt: record.began_at.toISOString(),
    changedAt: record.changed_at.toISOString(),
  }
}
