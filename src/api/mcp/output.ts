// What a command prints, gathered from the stream of its operation: bounded, however much it is.

import { StringDecoder } from 'node:string_decoder'
import { execExitEventSchema, type ExecOutputEvent, execOutputEventSchema } from '../../contract/exec.ts'
import type { EventStream } from '../http/sse.ts'
import { cleanLine } from './clean.ts'
import { type Cut, keepEnds } from './cut.ts'

export type Output = { stdout: Cut; stderr: Cut; exitCode: number; timedOut: boolean }

const LINE_LENGTH = 200

/** Throws what the stream threw. `watch` is given what tells the last line printed so far, when somebody wants to know. */
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

/** Frames are text, or in base64 where they are none; a character can begin in one and end in another. */
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
