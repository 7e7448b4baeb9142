// The audit log: exactly one row per authenticated call (spec 2.12), including refused and aborted ones. The row of a
// change is written before the change starts, so that no effect goes unrecorded. The row of a read, or of a call that
// is refused before it does anything, is written once, before the answer. Rows of calls that end together are written
// in one statement.

import type { App } from '../../app.ts'
import { isChange, whatOf, whoOf } from '../../contract/audit-sentences.ts'
import { batched } from '../../lib/concurrency/batch.ts'
import { newId } from '../../lib/ids.ts'
import {
  type AuditOutcome,
  type AuditRow,
  closeAuditRows,
  insertAuditRows,
  namesOfTargets,
  type Via,
} from '../../store/audit.ts'
import type { Caller } from '../credentials/caller.ts'

export type { Via } from '../../store/audit.ts'

export type CallOrigin = {
  requestId: string
  action: string
  via: Via
  agentName: string | null
  agentVersion: string | null
  userAgent: string | null
}

export type AuditedCall = {
  /** Sets the team of the row, the target and the masked input (mask.ts), as soon as they are known. */
  describe(about: { target: string | null; input: unknown; teamId: string }): void
  /** Sets what the call made, and adds to the input what it met, when it is done. */
  result(about: { target?: string; added?: Record<string, unknown> }): void
  /** Writes the row before a change. Throws if that fails. */
  open(): Promise<void>
  /** Writes how the call ended. Throws only if the row was neither opened nor can be written. */
  close(ending: { status: number; errorCode: string | null }): Promise<void>
  /** Whether `close` was called, whatever came of it: a row has one ending. */
  hasEnded(): boolean
}

export type AuditTrail = { begin(caller: Caller, origin: CallOrigin): AuditedCall }

export function createAuditTrail(app: Pick<App, 'db' | 'clock' | 'log' | 'teamEvents'>): AuditTrail {
  const { db, clock, log } = app
  const insert = batched(async (rows: AuditRow[]) => {
    await insertAuditRows(db, rows)
    return rows.map(() => {})
  })
  const complete = batched(async (endings: { id: string; outcome: AuditOutcome }[]) => {
    await closeAuditRows(db, endings)
    return endings.map(() => {})
  })

  const tellChange = changeTeller(app)

  return {
    begin: (caller, origin) => {
      const startedMs = clock.monotonicMs()
      const row = newRow(caller, origin, clock.now())
      /** Whether the row was written at the beginning; null if that was not asked for. */
      let opening: Promise<boolean> | null = null
      let ended = false
      let added: Record<string, unknown> | null = null
      return {
        hasEnded: () => ended,
        describe: ({ target, input, teamId }) => {
          row.target = target
          row.input = input
          row.teamId = teamId
        },
        result: ({ target, added: met = null }) => {
          if (target !== undefined) row.target = target
          added = met
        },
        open: async () => {
          const inserted = insert(row)
          opening = inserted.then(
            () => true,
            () => false,
          )
          await inserted
        },
        close: async ({ status, errorCode }) => {
          ended = true
          const durationMs = clock.monotonicMs() - startedMs
          const outcome = { target: row.target, durationMs, status, errorCode, added }
          tellChange(row, { status, errorCode })
          if (!(await opening)) return await insert({ ...row, outcome })
          try {
            await complete({ id: row.id, outcome })
          } catch (error) {
            // The change was made and its row exists: an error now would mislead the caller.
            log.error({ err: error, auditId: row.id, status }, 'audit row could not be closed')
          }
        },
      }
    },
  }
}

/** Tells those who follow the team (GET /v1/events), in the order of the ends of the calls. */
function changeTeller({ db, log, teamEvents }: Pick<App, 'db' | 'log' | 'teamEvents'>) {
  let told = Promise.resolve()
  return (row: AuditRow, ending: { status: number; errorCode: string | null }): void => {
    const { id, teamId, startedAt, action, target, credentialName, agentName } = row
    if (!isChange(action) || teamEvents.listenerCount('told') === 0) return
    const named = namesOfTargets(db, { teamId, ids: target === null ? [] : [target] }).catch(
      (err: unknown) => {
        log.warn({ err, auditId: id }, 'the name of what was changed could not be read')
        return new Map<string, string>()
      },
    )
    told = told.then(async () => {
      const targetName = (await named).get(target ?? '') ?? null
      const input = row.input as Record<string, unknown> | null
      const event = { action, target, targetName, input, ...ending }
      const sentence = `${whoOf({ credential: { name: credentialName }, agentName })} ${whatOf(event)}`
      const data = { id, at: startedAt.toISOString(), action, target, status: ending.status, sentence }
      teamEvents.emit('told', teamId, { event: 'change', data })
    })
  }
}

function newRow(caller: Caller, origin: CallOrigin, startedAt: Date): AuditRow {
  return {
    id: newId('audit'),
    teamId: caller.teamId,
    credentialKind: caller.kind,
    credentialId: caller.credentialId,
    credentialName: caller.credentialName,
    userId: caller.userId,
    action: origin.action,
    target: null,
    input: null,
    requestId: origin.requestId,
    via: origin.via,
    agentName: origin.agentName,
    agentVersion: origin.agentVersion,
    userAgent: origin.userAgent,
    startedAt,
    outcome: null,
  }
}
