// Older clients of this interface accept only keys of the form `e2b_` and hexadecimal digits. A key of ours has a second
// spelling in that form; both name the same key. It runs in browsers too.

const PREFIX_HEX = 12
const SECRET_BYTES = 32

/** Returns null for a text that is not a key. */
export function e2bSpellingOf(key: string): string | null {
  const [, prefix, secret] = /^berth_live_([0-9a-f]{12})_([A-Za-z0-9_-]{43})$/.exec(key) ?? []
  if (prefix === undefined || secret === undefined) return null
  const bytes = atob(secret.replaceAll('-', '+').replaceAll('_', '/'))
  const hex = Array.from(bytes, (byte) => byte.charCodeAt(0).toString(16).padStart(2, '0'))
  return `e2b_${prefix}${hex.join('')}`
}

/** Returns the key that a client sent in either spelling; a text in no spelling is returned as it is. */
export function keyOfSpelling(sent: string): string {
  const hex = /^e2b_([0-9a-f]+)$/.exec(sent)?.[1]
  if (hex?.length !== PREFIX_HEX + 2 * SECRET_BYTES) return sent
  const pairs = hex.slice(PREFIX_HEX).match(/../g) ?? []
  const encoded = btoa(String.fromCharCode(...pairs.map((pair) => Number.parseInt(pair, 16))))
  const secret = encoded.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
  return `berth_live_${hex.slice(0, PREFIX_HEX)}_${secret}`
}
