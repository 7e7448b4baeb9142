// Lines of bytes that come in pieces.

const LINE_END = 0x0a

export type LineSplitter = {
  /**
   * The lines that end in this piece, as text without their ends; each is taken before the next one is looked for. The piece may
   * be used again afterwards.
   */
  add(piece: Buffer): Generator<string>
}

/**
 * @param mostBytes Of a line, without its end.
 * @param onTooLong Called for a longer one, of which nothing is given.
 */
export function createLineSplitter(mostBytes: number, onTooLong: () => void): LineSplitter {
  let parts: Buffer[] = []
  let length = 0
  const take = (part: Buffer): boolean => {
    parts.push(part)
    length += part.length
    if (length > mostBytes) onTooLong()
    return length <= mostBytes
  }
  return {
    *add(piece) {
      let from = 0
      for (let end = piece.indexOf(LINE_END); end >= 0; end = piece.indexOf(LINE_END, from)) {
        if (!take(piece.subarray(from, end))) return
        const line = Buffer.concat(parts).toString('utf8')
        parts = []
        length = 0
        from = end + 1
        yield line
      }
      if (from < piece.length) take(Buffer.from(piece.subarray(from)))
    },
  }
}
