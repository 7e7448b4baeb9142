// Collects the output of a command from the stream of its operation, up to a bounded size. What came before the stream broke off is
// available too.

import { StringDecoder } from 'node:string_decoder'
import { execExitEventSchema, type ExecOutputEvent, execOutputEventSchema } from '../../contract/exec.ts'
import { type Process, processEndSchema } from '../../contract/process.ts'
import type { EventStream } from '../http/sse.ts'
import { cleanLine } from './clean.ts'
import { type Cut, keepEnds } from './cut.ts'

/** Shows the progress of a running command to its client. */
export type SoFar = {
  lastLine: () => string
  printed: () => { name: 'output' | 'stderr'; cut: Cut }[]
}

export type Watch = (soFar: SoFar) => void

export type Output = { stdout: Cut; stderr: Cut; exitCode: number; timedOut: boolean }

const LINE_LENGTH = 200

/** Throws the stream's error. `watch` gets a view of the output so far. */
export async function gatherOutput(stream: EventStream, most: number, watch: Watch): Promise<Output> {
  const kept = { stdout: gathering(most), stderr: gathering(most) }
  let exit = { exitCode: -1, timedOut: false }
  let last: 'stdout' | 'stderr' = 'stdout'
  watch({
    lastLine: () => cleanLine(kept[last].lastLine(), LINE_LENGTH),
    printed: () => [
      { name: 'output', cut: kept.stdout.end() },
      { name: 'stderr', cut: kept.stderr.end() },
    ],
  })
  await stream.streamEvents(async ({ event, data }) => {
    if (event === 'exit') exit = execExitEventSchema.parse(data)
    if (event !== 'stdout' && event !== 'stderr') return
    kept[event].add(execOutputEventSchema.parse(data))
    last = event
  })
  return { ...exit, stdout: kept.stdout.end(), stderr: kept.stderr.end() }
}

/** Output of a background process, both streams in the order they came. Offsets are in bytes (docs/processes.md). */
export type ProcessPrinted = Pick<Process, 'state' | 'exitCode'> & {
  output: Cut
  begin: number
  next: number
  /** Bytes after the requested offset that are no longer kept. */
  dropped: number
}

export async function gatherProcessOutput(
  stream: EventStream,
  { after, most }: { after: number; most: number },
  watch: Watch,
): Promise<ProcessPrinted> {
  const kept = gathering(most)
  watch({
    lastLine: () => cleanLine(kept.lastLine(), LINE_LENGTH),
    printed: () => [{ name: 'output', cut: kept.end() }],
  })
  let ended: Pick<Process, 'state' | 'exitCode'> = { state: 'running', exitCode: null }
  let begin: number | null = null
  let next = after
  let bytes = 0
  await stream.streamEvents(async ({ event, id, data }) => {
    if (event === 'end') ended = processEndSchema.parse(data)
    if (event !== 'stdout' && event !== 'stderr') return
    const piece = execOutputEventSchema.parse(data)
    kept.add(piece)
    bytes += Buffer.byteLength(piece.data, piece.encoding ?? 'utf8')
    if (id === undefined) return
    next = Number(id)
    begin ??= next - bytes
  })
  const from = begin ?? after
  return { ...ended, output: kept.end(), begin: from, next, dropped: from - after }
}

/** A frame is text, or base64 if its bytes are not UTF-8; a character can begin in one frame and end in another. */
function gathering(most: number) {
  const keeper = keepEnds(most)
  const decoder = new StringDecoder('utf8')
  return {
    add: ({ data, encoding }: ExecOutputEvent) =>
      keeper.add(encoding === 'base64' ? decoder.write(Buffer.from(data, 'base64')) : decoder.end() + data),
    lastLine: () => keeper.lastLine(),
    end: () => {
      keeper.add(decoder.end())
      return keeper.cut()
    },
  }
}
