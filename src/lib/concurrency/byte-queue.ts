// A queue between a producer and a consumer that limits the waiting bytes: the producer waits, or stops reading its own
// source, until the consumer has taken enough.

export type ByteQueue<T> = AsyncIterable<T> & {
  /** Resolves when the waiting bytes are within the limit again. After the end nothing is added. */
  push(item: T): Promise<void>
  isFull(): boolean
  end(): void
}

/** There may be several consumers, one after another: each continues where the previous one stopped. */
export function createByteQueue<T>(maxBytes: number, bytesOf: (item: T) => number): ByteQueue<T> {
  const waiting: T[] = []
  let bytes = 0
  let isOver = false
  let changed = Promise.withResolvers<void>()
  const tell = () => {
    changed.resolve()
    changed = Promise.withResolvers<void>()
  }
  const isFull = () => bytes > maxBytes
  return {
    push: async (item) => {
      if (isOver) return
      waiting.push(item)
      bytes += bytesOf(item)
      tell()
      while (isFull() && !isOver) await changed.promise
    },
    isFull,
    end: () => {
      isOver = true
      tell()
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const item = waiting.shift()
        if (item !== undefined) {
          bytes -= bytesOf(item)
          tell()
          yield item
        } else if (isOver) return
        else await changed.promise
      }
    },
  }
}
