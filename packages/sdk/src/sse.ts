// Parses Server-Sent Events (WHATWG HTML, 9.2). The service sends a comment every 15 s, so a stream without any data
// for long has lost its connection.

import type { ReadableStream } from './platform.ts'

/** One event of a stream. A call that sends its `id` as `since` goes on behind it. */
export type StreamEvent = { event: string; data: unknown; id: string | null }

const QUIET_MS = 60_000

/** The events of a body until it ends. `onQuiet` is called when nothing came for a minute; it is to end the body. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  onQuiet: () => void,
): AsyncGenerator<StreamEvent> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const quiet = setTimeout(onQuiet, QUIET_MS)
      const { done, value } = await reader.read().finally(() => clearTimeout(quiet))
      if (done) return
      const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const event = eventOf(block)
        if (event) yield event
      }
    }
  } finally {
    // A reader that stops early ends the call.
    await reader.cancel().catch(() => {})
  }
}

/** Null for a comment. */
function eventOf(block: string): StreamEvent | null {
  const fields: Record<string, string> = {}
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, '')
  }
  if (fields.data === undefined) return null
  return { event: fields.event ?? 'message', data: JSON.parse(fields.data), id: fields.id ?? null }
}
