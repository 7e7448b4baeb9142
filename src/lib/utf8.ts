// Text that arrives in pieces: a piece may end within a character, whose rest comes with the next one.

/** Returns how many bytes of a piece are whole; the others, at most three, may begin a character that goes on. */
export function wholeLength(bytes: Uint8Array): number {
  for (let length = 1; length <= Math.min(3, bytes.length); length++) {
    const byte = bytes[bytes.length - length] ?? 0
    if (isContinuation(byte)) continue
    return length < characterLength(byte) ? bytes.length - length : bytes.length
  }
  return bytes.length
}

/** Leaves out the rest of a character whose beginning lies before the piece. */
export function withoutBrokenStart(bytes: Buffer): Buffer {
  let begin = 0
  while (begin < 3 && isContinuation(bytes[begin] ?? 0)) begin += 1
  return bytes.subarray(begin)
}

function isContinuation(byte: number): boolean {
  return (byte & 0b1100_0000) === 0b1000_0000
}

function characterLength(first: number): number {
  if (first >= 0b1111_0000 && first <= 0b1111_0100) return 4
  if (first >= 0b1110_0000 && first < 0b1111_0000) return 3
  if (first >= 0b1100_0010 && first < 0b1110_0000) return 2
  return 1
}
