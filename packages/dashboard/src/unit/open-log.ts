// A followed log of a unit: each line with the cursor that goes on behind it.

import { BerthError, type StreamEvent } from '@berth/sdk'
import { berthOf } from '../api/client.ts'

/** Where a log was left: without it the newest lines come. */
export type LogPlace = { since: string | undefined; limit: number }

export type Heard<Line> = { line: Line; cursor: string | null }

export async function openLog<Line>(
  team: string,
  path: `/v1/units/${string}`,
  place: LogPlace,
  signal: AbortSignal,
): Promise<AsyncIterable<Heard<Line>>> {
  const query = { ...place, follow: true }
  return linesOf<Line>(await berthOf(team).stream(path, { query, signal }))
}

async function* linesOf<Line>(events: AsyncIterable<StreamEvent>): AsyncGenerator<Heard<Line>> {
  for await (const { event, data, id } of events) {
    if (event === 'end') return
    yield { line: data as Line, cursor: id }
  }
  // A proxy that ends ends the response in good order.
  throw new BerthError('connection_failed', 'The log broke off.')
}
