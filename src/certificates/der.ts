// Writes the part of DER (X.690) that certificates and certificate requests use. Nothing here parses DER.

/** An element: its tag, its length and its content. */
function element(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content])
}

/** A length below 128 is one byte; a longer one is preceded by its number of bytes. */
function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length])
  const hex = length.toString(16)
  const bytes = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes])
}

export const sequence = (...parts: Uint8Array[]) => element(0x30, ...parts)
export const set = (...parts: Uint8Array[]) => element(0x31, ...parts)
export const octets = (content: Uint8Array) => element(0x04, content)
/** Whole bytes, so the number of unused bits is 0. */
export const bits = (content: Uint8Array) => element(0x03, Buffer.from([0]), content)
/** A list of named bits: of the first byte, those that are not used are at its end. */
export const namedBits = (byte: number, unused: number) => element(0x03, Buffer.from([unused, byte]))
export const text = (content: string) => element(0x0c, Buffer.from(content, 'utf8'))
export const isTrue = element(0x01, Buffer.from([0xff]))
/** A context-specific element `[number]`, with other elements or a value of its own. */
export const tagged = (number: number, ...parts: Uint8Array[]) => element(0xa0 | number, ...parts)
export const taggedValue = (number: number, value: Uint8Array) => element(0x80 | number, value)

/** An unsigned number in big-endian bytes. */
export function integer(bytes: Uint8Array): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0)
  const digits = first === -1 ? Buffer.from([0]) : Buffer.from(bytes.subarray(first))
  // A leading bit of 1 would mean a negative number.
  return element(0x02, ...((digits[0] ?? 0) >= 0x80 ? [Buffer.from([0]), digits] : [digits]))
}

/** An object identifier such as `1.2.840.10045.4.3.2`; its first two numbers share a byte. */
export function objectId(name: string): Buffer {
  const [first = 0, second = 0, ...rest] = name.split('.').map(Number)
  return element(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(inSevens)]))
}

/** Base 128, big-endian; every byte but the last has its highest bit set. */
function inSevens(number: number): number[] {
  const bytes = [number & 0x7f]
  for (let rest = number >>> 7; rest > 0; rest >>>= 7) bytes.unshift((rest & 0x7f) | 0x80)
  return bytes
}

/** In seconds; valid before 2050. */
export function utcTime(at: Date): Buffer {
  const digits = at.toISOString().replaceAll(/[-:T]|\.\d+/g, '')
  return element(0x17, Buffer.from(digits.slice(2), 'latin1'))
}
