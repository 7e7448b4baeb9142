// The columns of `allowances` (store/allowances.ts).

export type AllowancesTable = {
  name: string
  of: Buffer
  /** Oldest first; expired times are dropped when the next one is added. */
  spent: Date[]
  last_spent_at: Date
}
