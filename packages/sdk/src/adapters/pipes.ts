// Output of a command as two streams of bytes.

type Piece = { stream: 'stdout' | 'stderr'; bytes: Uint8Array }

export type Pipes = {
  stdout: ReadableStream<Uint8Array>
  stderr: ReadableStream<Uint8Array>
  /** Settles when the output has ended. */
  ended: Promise<void>
}

/** What nobody reads yet is kept: a caller that reads one of the two, or only waits for the end, must not stop the command. */
export function pipesOf(output: AsyncIterable<Piece>): Pipes {
  const writers = {} as Record<Piece['stream'], ReadableStreamDefaultController<Uint8Array>>
  const isOpen = { stdout: true, stderr: true }
  const streamOf = (name: Piece['stream']) =>
    new ReadableStream<Uint8Array>({
      start: (writer) => void (writers[name] = writer),
      cancel: () => void (isOpen[name] = false),
    })
  const [stdout, stderr] = [streamOf('stdout'), streamOf('stderr')]
  const close = (end: (writer: ReadableStreamDefaultController<Uint8Array>) => void) => {
    for (const name of ['stdout', 'stderr'] as const) if (isOpen[name]) end(writers[name])
  }
  const pump = async () => {
    try {
      for await (const { stream, bytes } of output) if (isOpen[stream]) writers[stream].enqueue(bytes)
      close((writer) => writer.close())
    } catch (error) {
      close((writer) => writer.error(error))
      throw error
    }
  }
  const ended = pump()
  // Passed only to callers that wait for it.
  ended.catch(() => {})
  return { stdout, stderr, ended }
}
