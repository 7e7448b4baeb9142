// Bytes between one who brings them and one who takes them, of which only so many wait.

export type Pieces = AsyncIterable<Buffer> & {
  /** Resolves when there is room for more. After the end nothing is kept. */
  push(piece: Buffer): Promise<void>
  end(): void
}

/** There may be one taker after another; what the earlier one did not take is the later one's. */
export function createPieces(mostBytes: number): Pieces {
  const waiting: Buffer[] = []
  let bytes = 0
  let isOver = false
  let changed = Promise.withResolvers<void>()
  const tell = () => {
    changed.resolve()
    changed = Promise.withResolvers<void>()
  }
  return {
    push: async (piece) => {
      if (isOver || piece.length === 0) return
      waiting.push(piece)
      bytes += piece.length
      tell()
      while (bytes > mostBytes && !isOver) await changed.promise
    },
    end: () => {
      isOver = true
      tell()
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const piece = waiting.shift()
        if (piece) {
          bytes -= piece.length
          tell()
          yield piece
        } else if (isOver) return
        else await changed.promise
      }
    },
  }
}
