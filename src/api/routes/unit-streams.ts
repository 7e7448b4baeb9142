// The streams of a unit: the output of a running command, and a followed log (spec 6, design 5).

import { z } from 'zod'
import type { App } from '../../app.ts'
import type { Exec } from '../../contract/exec.ts'
import { strict } from '../../contract/fields.ts'
import type { LogQuery } from '../../contract/logs.ts'
import type { Caller } from '../../domain/credentials/caller.ts'
import { execInUnit } from '../../domain/units/exec.ts'
import { followLogs } from '../../domain/units/logs.ts'
import { outputFrames } from '../http/output-frames.ts'
import { eventStream, type EventStream } from '../http/sse.ts'

/** Event `end` of a followed log. */
export const endReasonSchema = strict({
  reason: z.string().describe('Why the stream ended.'),
}).meta({ id: 'LogEnd' })

export function streamExec(
  app: App,
  caller: Caller,
  id: string,
  request: Exec,
  signal: AbortSignal,
): EventStream {
  return eventStream(async (send) => {
    const frames = { stdout: outputFrames(), stderr: outputFrames() }
    const sendRest = async () => {
      for (const stream of ['stdout', 'stderr'] as const) {
        for (const event of frames[stream].end()) await send({ event: stream, data: event })
      }
    }
    const { exitCode, timedOut, truncated } = await execInUnit(app, caller, id, request, {
      signal,
      onOutput: async ({ stream, data }) => {
        for (const event of frames[stream].push(data)) await send({ event: stream, data: event })
      },
    }).catch(async (error: unknown) => {
      await sendRest().catch(() => {})
      throw error
    })
    await sendRest()
    await send({ event: 'exit', data: { exitCode, timedOut, truncated } })
  })
}

export function streamLogs(
  app: App,
  caller: Caller,
  id: string,
  query: LogQuery,
  signal: AbortSignal,
): EventStream {
  return eventStream(async (send) => {
    for await (const event of followLogs(app, caller, id, query, signal)) {
      if (event.kind === 'line') await send({ event: 'line', id: event.cursor, data: event.line })
      else await send({ event: 'end', data: { reason: event.reason } })
    }
  })
}
