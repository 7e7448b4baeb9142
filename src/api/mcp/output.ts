// Collects the output of a command from the stream of its operation, up to a bounded size.

import { StringDecoder } from 'node:string_decoder'
import { execExitEventSchema, type ExecOutputEvent, execOutputEventSchema } from '../../contract/exec.ts'
import type { EventStream } from '../http/sse.ts'
import { cleanLine } from './clean.ts'
import { type Cut, keepEnds } from './cut.ts'

export type Output = { stdout: Cut; stderr: Cut; exitCode: number; timedOut: boolean }

const LINE_LENGTH = 200

/** Throws the stream's error. `watch`, if given, gets a function that returns the last line printed so far. */
export async function gatherOutput(
  stream: EventStream,
  most: number,
  watch: (lastLine: () => string) => void,
): Promise<Output> {
  const kept = { stdout: gathering(most), stderr: gathering(most) }
  let exit = { exitCode: -1, timedOut: false }
  let last: 'stdout' | 'stderr' = 'stdout'
  watch(() => cleanLine(kept[last].lastLine(), LINE_LENGTH))
  await stream.streamEvents(async ({ event, data }) => {
    if (event === 'exit') exit = execExitEventSchema.parse(data)
    if (event !== 'stdout' && event !== 'stderr') return
    kept[event].add(execOutputEventSchema.parse(data))
    last = event
  })
  return { ...exit, stdout: kept.stdout.end(), stderr: kept.stderr.end() }
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
