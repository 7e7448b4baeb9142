// Money is stored in whole nano-cents of the euro, and in answers it is euro cents with fractions. Amounts are rounded to
// whole nano-cents by `counted` in store/sql/ledger.sql. People see them rounded to a hundredth of a cent, by the
// functions here and nowhere else: in the service's sentences, its pages, the dashboard and the CLI.

const NANO_CENTS_PER_CENT = 1_000_000_000
const LEAST_SHOWN_CENTS = 0.01
const LEAST_CENTS = 1 / NANO_CENTS_PER_CENT

// Made once: a formatter costs more than what it formats.
const digits = {
  whole: new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 }),
  fractions: new Intl.NumberFormat('en', { minimumFractionDigits: 4, maximumFractionDigits: 4 }),
  all: new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 11 }),
  cents: new Intl.NumberFormat('en', { maximumFractionDigits: 2, useGrouping: false }),
}

export function toCents(nanoCents: bigint): number {
  return Number(nanoCents) / NANO_CENTS_PER_CENT
}

/** Converts whole cents. */
export function toNanoCents(cents: number | bigint): bigint {
  return BigInt(cents) * BigInt(NANO_CENTS_PER_CENT)
}

/**
 * `€1,234.50`: two digits, and four below a euro where the cents are not whole, as `€0.0014`. What is less than that is
 * no nothing: `less than €0.0001`, or with `less` in a column `< €0.0001`.
 */
export function euros(cents: number, less = 'less than'): string {
  if (isNothing(cents)) return '€0.00'
  if (Math.abs(cents) < LEAST_SHOWN_CENTS) return cents < 0 ? 'just below €0.00' : `${less} €0.0001`
  return `${cents < 0 ? '−' : ''}€${euroDigits(Math.abs(cents))}`
}

/** `1,234.50`, for a sentence that has the currency as a word. */
export function euroDigits(cents: number): string {
  const shown = Math.round(cents * 100) / 100
  return (shown < 100 && !Number.isInteger(shown) ? digits.fractions : digits.whole).format(shown / 100)
}

/** `0.5`, `1234.57`: for prices, and for sentences beside fields in cents. */
export function centDigits(cents: number): string {
  return digits.cents.format(cents)
}

/** `0.5 cents`, and from a euro on `€1.50`. */
export const amount = (cents: number): string => (cents >= 100 ? euros(cents) : `${centDigits(cents)} cents`)

/** `0.5 cents an hour`. */
export const rate = (centsPerHour: number): string => `${amount(centsPerHour)} an hour`

/** What the units that run cost together; nothing as long as the prices are unknown. */
export function centsAnHour(
  units: { state: string; size: string }[],
  pricing: { sizes: { size: string; centsPerHour: number }[] } | undefined,
): number {
  const prices = new Map(pricing?.sizes.map(({ size, centsPerHour }) => [size, centsPerHour]))
  return units.reduce((sum, { state, size }) => sum + (state === 'running' ? (prices.get(size) ?? 0) : 0), 0)
}

/** `€0.00001388889`: nothing of it is rounded. */
export function exactEuros(cents: number): string {
  return isNothing(cents) ? '€0.00' : `${cents < 0 ? '−' : ''}€${digits.all.format(Math.abs(cents) / 100)}`
}

/** Sums of fractions differ from zero by less than the least amount. */
function isNothing(cents: number): boolean {
  return Math.abs(cents) < LEAST_CENTS / 2
}
