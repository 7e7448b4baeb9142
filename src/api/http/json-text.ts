// Writes JSON with numbers that have no exponent: some clients read an exponent as text, or fail. Amounts of money
// are as small as a billionth of a cent.

/** The smallest unit of money has this many decimal places of a cent. */
const PLACES = 9

/** Text can match too; that only takes the slower path. */
const exponent = /\de[+-]\d/

/** In ECMAScript; TypeScript does not declare it yet. */
const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => unknown }

export function jsonText(value: unknown): string {
  const text = JSON.stringify(value)
  return exponent.test(text) ? JSON.stringify(value, withoutExponent) : text
}

function withoutExponent(_key: string, value: unknown): unknown {
  const isSmall = typeof value === 'number' && value !== 0 && Math.abs(value) < 1e-6
  return isSmall ? rawJSON(value.toFixed(PLACES).replace(/0+$/, '').replace(/\.$/, '')) : value
}
