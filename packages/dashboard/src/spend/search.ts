// The filters of the spend page, kept in the URL.

export const ranges = [7, 14, 30, 90, 365] as const

export type SpendSearch = { days?: number }

/** What the address says, as far as it can be understood. */
export function readSpendSearch(search: Record<string, unknown>): SpendSearch {
  const days = ranges.find((range) => range === Number(search['days']))
  return days === undefined ? {} : { days }
}
