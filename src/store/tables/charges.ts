// The ledger's charges. The database adds them when meters move (sql/ledger.sql), and they are never changed. Their
// sums by day, credential and size are stored as well.

import type { Size } from '../../contract/policy.ts'
import type { MeterKind } from './meters.ts'
import type { ColumnType } from 'kysely'

/** Columns that only the database writes. */
type Written<T> = ColumnType<T, never, T>

export type ChargesTable = {
  meter_id: Written<bigint>
  from_ms: Written<bigint>
  to_ms: Written<bigint>
  unit_id: Written<string>
  team_id: Written<string>
  credential_id: Written<string>
  kind: Written<MeterKind>
  size: Written<Size>
  day: Written<Date>
  nano_cents: Written<bigint>
}

export type UsageDaysTable = {
  team_id: Written<string>
  credential_id: Written<string>
  day: Written<Date>
  kind: Written<MeterKind>
  size: Written<Size>
  ms: Written<bigint>
  nano_cents: Written<bigint>
}

export type BalancesTable = {
  team_id: Written<string>
  nano_cents: Written<bigint>
  recounted_at: Written<Date | null>
}
