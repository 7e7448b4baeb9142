// The fields of MySQL's messages: zero-terminated text, and length-prefixed bytes. Pure.

export function zeroEnded(text: string | Buffer): Buffer {
  return Buffer.concat([typeof text === 'string' ? Buffer.from(text) : text, Buffer.from([0])])
}

/** With its length before it; the length field itself is longer for large values. */
export function counted(bytes: Buffer): Buffer {
  const { length } = bytes
  if (length < 251) return Buffer.concat([Buffer.from([length]), bytes])
  const head =
    length < 0x1_0000
      ? Buffer.from([0xfc, length & 0xff, length >> 8])
      : Buffer.from([0xfd, length & 0xff, (length >> 8) & 0xff, length >> 16])
  return Buffer.concat([head, bytes])
}

/** Reads one field after the other; returns null once less is left than announced. */
export function readerOf(bytes: Buffer) {
  let at = 0
  const next = (length: number): Buffer | null => {
    if (at + length > bytes.length) return null
    at += length
    return bytes.subarray(at - length, at)
  }
  const number = (length: number): number | null => next(length)?.readUIntLE(0, length) ?? null
  return {
    isAtEnd: () => at === bytes.length,
    counted(): Buffer | null {
      const first = number(1)
      const more = first === 0xfc ? 2 : first === 0xfd ? 3 : 0
      const length = more > 0 ? number(more) : first
      return length === null || (more === 0 && length > 250) ? null : next(length)
    },
    short(): Buffer | null {
      const length = number(1)
      return length === null ? null : next(length)
    },
    zeroEnded(): Buffer | null {
      const end = bytes.indexOf(0, at)
      return end < 0 ? null : (next(end + 1 - at)?.subarray(0, -1) ?? null)
    },
    rest: () => next(bytes.length - at),
  }
}
