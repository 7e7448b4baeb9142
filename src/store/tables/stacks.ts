// The columns of `stacks` (store/stacks.ts).

import type { ColumnType } from 'kysely'

export type StacksTable = {
  id: string
  team_id: string
  name: string
  created_at: Date
  /** The idle window of units that sleep together; null while each unit has its own (spec 2.6). */
  sleep: string | null
  /** True: it was made for a unit without a stack, and no call has named it since. */
  unnamed: boolean
  /** The first unit of the create that made it, until another call names it. */
  made_by: string | null
  /** Whether a unit of it has ever been kept to its stack (store/egress.ts). */
  is_scope: ColumnType<boolean, never, boolean>
  deleted_at: ColumnType<Date | null, never, Date>
}
