// The audit log of the caller's team, newest first (spec 2.12).

import type { App } from '../../app.ts'
import type { AuditEvent, AuditList, AuditQuery } from '../../contract/audit.ts'
import { changeActions } from '../../contract/audit-actions.ts'
import { parseCursor } from '../../contract/cursor.ts'
import { encodeCursor } from '../../lib/cursor.ts'
import { toCents } from '../../lib/money.ts'
import { type AuditRecord, listAuditOfTeam, namesOfTargets } from '../../store/audit.ts'
import type { Caller } from '../credentials/caller.ts'

export async function listAudit(app: App, { teamId }: Caller, query: AuditQuery): Promise<AuditList> {
  const found = await listAuditOfTeam(app.db, {
    teamId,
    credentialId: query.key ?? null,
    agentName: query.agent ?? null,
    action: query.action ?? null,
    target: query.target ?? null,
    since: query.since === undefined ? null : new Date(query.since),
    until: query.until === undefined ? null : new Date(query.until),
    failed: query.failed,
    actions: query.changes ? changeActions : null,
    before: parseCursor(query.cursor, 'audit'),
    // One more row than asked for, to know whether there is a next page.
    limit: query.limit + 1,
  })
  const page = found.slice(0, query.limit)
  const last = page.at(-1)
  const ids = [...new Set(page.flatMap(({ target }) => target ?? []))]
  const names = await namesOfTargets(app.db, { teamId, ids })
  return {
    events: page.map((record) => showEvent(record, names)),
    next: found.length > page.length && last ? encodeCursor(last.id) : null,
  }
}

function showEvent(record: AuditRecord, names: Map<string, string>): AuditEvent {
  return {
    id: record.id,
    at: record.started_at.toISOString(),
    credential: { id: record.credential_id, kind: record.credential_kind, name: record.credential_name },
    userId: record.user_id,
    action: record.action,
    target: record.target,
    targetName: names.get(record.target ?? '') ?? null,
    input: record.input,
    status: record.status,
    errorCode: record.error_code,
    durationMs: record.duration_ms === null ? null : roundMs(record.duration_ms),
    costDeltaCents: toCents(record.cost_delta_nanocents),
    via: record.via,
    agentName: record.agent_name,
    agentVersion: record.agent_version,
    userAgent: record.user_agent,
    requestId: record.request_id,
  }
}

/** Rounded to microseconds; more digits are noise. */
function roundMs(ms: number): number {
  return Math.round(ms * 1000) / 1000
}
