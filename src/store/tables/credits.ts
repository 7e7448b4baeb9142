// The columns of `credits` (store/credits.ts).

import type { ColumnType } from 'kysely'

export type CreditKind = 'free' | 'granted' | 'topped-up' | 'refunded' | 'disputed'

type Once<T> = ColumnType<T, T, never>

export type CreditsTable = {
  id: Once<string>
  team_id: Once<string>
  kind: Once<CreditKind>
  nano_cents: Once<bigint>
  source: Once<string>
  note: Once<string | null>
  created_at: Once<Date>
}
