// Reads one character of a text as programs may have written it: as it is, or by an escape of percent-encoding, of JSON and
// other languages of programming, of HTML or of quoted-printable, and one escape inside another
// (decisions/brokered-secrets.md). Pure.

/** A character may have so many escapes around each other. */
export const LEVELS = 2
/** The text ends before it can be said. */
export const MORE = -1
const NONE = -2

/** `&#x0000002f` is the longest that is read. */
const REFERENCE_LENGTH = 10

/** A character and where the next one begins, in one number: this is called for each byte. */
export const codeOf = (read: number): number => read & 255
export const nextOf = (read: number): number => read >>> 8

/** The character at a place, with the escapes of so many levels undone; MORE if the text ends within one. */
export function readAt(bytes: Buffer, at: number, level: number): number {
  if (level === 0) return at < bytes.length ? (at + 1) * 256 + (bytes[at] ?? 0) : MORE
  const outer = readAt(bytes, at, level - 1)
  if (outer === MORE) return MORE
  const read = escapes[codeOf(outer)]?.(bytes, nextOf(outer), level - 1) ?? NONE
  return read === NONE ? outer : read
}

export function beginsEscape(code: number): boolean {
  return escapes[code] !== undefined
}

/** A line break that is no part of a text in quoted-printable. Returns where the text goes on, MORE, or null for none. */
export function softBreakAt(bytes: Buffer, at: number): number | null {
  if (bytes[at] !== 0x3d) return null
  const next = bytes[at + 1] === 0x0d ? at + 2 : at + 1
  if (next >= bytes.length) return MORE
  return bytes[next] === 0x0a ? next + 1 : null
}

type Escape = (bytes: Buffer, at: number, level: number) => number

const hexadecimal: Escape = (bytes, at, level) => readHex(bytes, at, { level, digits: 2 })

const backslash: Escape = (bytes, at, level) => {
  const read = readAt(bytes, at, level)
  if (read === MORE) return MORE
  const letter = String.fromCharCode(codeOf(read))
  const digits = { u: 4, x: 2 }[letter]
  if (digits !== undefined) return readHex(bytes, nextOf(read), { level, digits })
  const control = { n: 0x0a, r: 0x0d, t: 0x09 }[letter]
  if (control !== undefined) return nextOf(read) * 256 + control
  return /[A-Za-z0-9]/.test(letter) ? NONE : read
}

const reference: Escape = (bytes, at, level) => {
  let name = ''
  let next = at
  while (name.length <= REFERENCE_LENGTH) {
    const read = readAt(bytes, next, level)
    if (read === MORE) return MORE
    next = nextOf(read)
    const character = String.fromCharCode(codeOf(read))
    if (character === ';') return next * 256 + referred(name)
    if (!/[#A-Za-z0-9]/.test(character)) return NONE
    name += character
  }
  return NONE
}

/** The names of HTML for what is visible ASCII and no letter or digit, without the rare ones. */
export const referenceNames: Record<string, string> = {
  amp: '&',
  apos: "'",
  bsol: '\\',
  equals: '=',
  grave: '`',
  gt: '>',
  lt: '<',
  percnt: '%',
  plus: '+',
  quot: '"',
  sol: '/',
}

/** Zero, which no value has, for what is unknown. */
function referred(name: string): number {
  const [, hex, decimal] = /^#(?:[xX]([0-9A-Fa-f]+)|([0-9]+))$/.exec(name) ?? []
  const code = hex !== undefined ? Number.parseInt(hex, 16) : Number(decimal ?? 0)
  return (referenceNames[name]?.charCodeAt(0) ?? code) % 256
}

function readHex(bytes: Buffer, at: number, { level, digits }: { level: number; digits: number }): number {
  let code = 0
  let next = at
  for (let each = 0; each < digits; each += 1) {
    const read = readAt(bytes, next, level)
    if (read === MORE) return MORE
    const digit = Number.parseInt(String.fromCharCode(codeOf(read)), 16)
    if (Number.isNaN(digit)) return NONE
    code = code * 16 + digit
    next = nextOf(read)
  }
  return code > 255 ? NONE : next * 256 + code
}

/** By the character that each begins with. */
const escapes: (Escape | undefined)[] = Array.from({ length: 256 })
escapes[0x25] = hexadecimal // %
escapes[0x3d] = hexadecimal // =
escapes[0x5c] = backslash
escapes[0x26] = reference // &
