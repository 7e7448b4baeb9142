// What a unit's own process printed. Reading wakes nothing.

import type { LogLine, LogPage } from './contract.ts'
import { isBerthError } from './errors.ts'
import { type CallOptions, sleep, type Transport } from './transport.ts'

export type LogOptions = CallOptions & {
  /** A `next` of an earlier page, or a time (ISO 8601). Without it the newest lines come. */
  since?: string | undefined
  /** How many lines to begin with. */
  limit?: number | undefined
}

export type FollowOptions = LogOptions & {
  /** Goes on with what comes, until the unit's run ends. */
  follow?: boolean | undefined
}

const RECONNECTIONS = 5

export async function logPage(transport: Transport, unitId: string, options: LogOptions): Promise<LogPage> {
  const { since, limit, ...rest } = options
  return await transport.json<LogPage>({
    method: 'GET',
    path: logsPath(unitId),
    query: { since, limit },
    ...rest,
  })
}

/** Lines of the log. A followed one that loses its connection goes on behind the last line that came. */
export async function* logLines(
  transport: Transport,
  unitId: string,
  options: FollowOptions,
): AsyncGenerator<LogLine> {
  const { follow, since, limit, ...rest } = options
  if (!follow) {
    yield* (await logPage(transport, unitId, options)).lines
    return
  }
  let after = since
  for (let lost = 0; ; ) {
    try {
      const query = { since: after, limit, follow: true }
      for await (const { event, data, id } of transport.events({
        method: 'GET',
        path: logsPath(unitId),
        query,
        ...rest,
      })) {
        if (event === 'end') return
        yield data as LogLine
        after = id ?? after
        lost = 0
      }
      return
    } catch (error) {
      lost += 1
      if (!isBerthError(error, 'connection_failed') || after === undefined || lost > RECONNECTIONS)
        throw error
      await sleep(200 * 2 ** lost, options.signal)
    }
  }
}

const logsPath = (unitId: string) => `/v1/units/${encodeURIComponent(unitId)}/logs`
