// Money is stored in whole nano-cents of the euro, and shown in euro cents with fractions. Nothing here rounds: amounts
// are rounded to whole nano-cents by `counted` in store/sql/ledger.sql, and for sentences to two digits.

const NANO_CENTS_PER_CENT = 1_000_000_000

export function toCents(nanoCents: bigint): number {
  return Number(nanoCents) / NANO_CENTS_PER_CENT
}

/** Converts whole cents. */
export function toNanoCents(cents: number | bigint): bigint {
  return BigInt(cents) * BigInt(NANO_CENTS_PER_CENT)
}
