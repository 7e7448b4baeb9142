// The columns of `forks` (store/forks.ts).

import type { Progress } from './unit-record.ts'
import type { ColumnType } from 'kysely'

/**
 * Why a fork failed, and for which unit: a copy, which is in `error`, or a source that was destroyed before it was
 * copied.
 */
export type ForkError = { text: string; unitId: string; isSourceGone?: true }

export type ForksTable = {
  id: string
  team_id: string
  /** The id of a unit or a stack. */
  source_id: string
  /** The stack of the copies. */
  stack_id: string
  /** The credential that requested the fork. */
  made_by: string
  /** Skipped units of the source, each with the reason. */
  skipped: ColumnType<string[], string, never>
  progress: ColumnType<Progress | null, string | null, string | null>
  created_at: Date
  ended_at: Date | null
  error: ColumnType<ForkError | null, string | null, string | null>
}
