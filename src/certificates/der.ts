// The part of DER (X.690) that a certificate and a request for one are written in. Only writing: nothing here reads what
// somebody else has written.

/** An element: its tag, its length, and what is in it. */
function element(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content])
}

/** Below 128 in one byte, else the number of bytes that follow. */
function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length])
  const hex = length.toString(16)
  const bytes = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes])
}

export const sequence = (...parts: Uint8Array[]) => element(0x30, ...parts)
export const set = (...parts: Uint8Array[]) => element(0x31, ...parts)
export const octets = (content: Uint8Array) => element(0x04, content)
/** Whole bytes, so that no bit at the end is unused. */
export const bits = (content: Uint8Array) => element(0x03, Buffer.from([0]), content)
export const text = (content: string) => element(0x0c, Buffer.from(content, 'utf8'))
export const isTrue = element(0x01, Buffer.from([0xff]))
/** An element that its place gives a meaning: `[number]`, with others in it or a value of its own. */
export const tagged = (number: number, ...parts: Uint8Array[]) => element(0xa0 | number, ...parts)
export const taggedValue = (number: number, value: Uint8Array) => element(0x80 | number, value)

/** Of bytes that are a number without a sign, the highest first. */
export function integer(bytes: Uint8Array): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0)
  const digits = first === -1 ? Buffer.from([0]) : Buffer.from(bytes.subarray(first))
  // The highest bit would be a sign.
  return element(0x02, ...((digits[0] ?? 0) >= 0x80 ? [Buffer.from([0]), digits] : [digits]))
}

/** Of a name such as `1.2.840.10045.4.3.2`, whose first two numbers share a byte. */
export function objectId(name: string): Buffer {
  const [first = 0, second = 0, ...rest] = name.split('.').map(Number)
  return element(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(inSevens)]))
}

/** Seven bits a byte, the highest first; all bytes but the last have their highest bit set. */
function inSevens(number: number): number[] {
  const bytes = [number & 0x7f]
  for (let rest = number >>> 7; rest > 0; rest >>>= 7) bytes.unshift((rest & 0x7f) | 0x80)
  return bytes
}

/** To the second, before 2050. */
export function utcTime(at: Date): Buffer {
  const digits = at.toISOString().replaceAll(/[-:T]|\.\d+/g, '')
  return element(0x17, Buffer.from(digits.slice(2), 'latin1'))
}
