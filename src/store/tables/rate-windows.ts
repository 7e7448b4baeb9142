// The columns of `rate_windows` (store/rate-windows.ts).

/** For each rate, oldest first: for how many milliseconds from `spent_at` calls count, and how many they are. */
export type Spent = Partial<Record<string, (readonly [lastsMs: number, calls: number])[]>>

export type RateWindowsTable = {
  credential_id: string
  /** The time of the newest call. */
  spent_at: Date
  spent: Spent
  revision: bigint
}
