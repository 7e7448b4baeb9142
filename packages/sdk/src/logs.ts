// Logs of a unit: what its own process printed, and what it reached. Reading wakes nothing.

import type { EgressLogLine, EgressLogPage, LogLine, LogPage } from './contract.ts'
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

export type EgressLogOptions = LogOptions & {
  /** Only lines with this decision. */
  decision?: EgressLogLine['decision'] | undefined
}

export type FollowEgressOptions = EgressLogOptions & {
  /** Goes on with what comes, until the unit is destroyed. A line that has grown comes again. */
  follow?: boolean | undefined
}

/** Each log with its place below the unit, and what it answers. */
type Logs = {
  logs: { page: LogPage; line: LogLine; options: LogOptions }
  'egress/log': { page: EgressLogPage; line: EgressLogLine; options: EgressLogOptions }
}

const RECONNECTIONS = 5

export async function logPage<Log extends keyof Logs>(
  transport: Transport,
  unit: string,
  log: Log,
  options: Logs[Log]['options'] & { follow?: boolean | undefined },
): Promise<Logs[Log]['page']> {
  const { query, rest } = askedOf(options)
  return await transport.json<Logs[Log]['page']>({ method: 'GET', path: `${unit}/${log}`, query, ...rest })
}

/** Lines of the log. A followed one that loses its connection goes on behind the last line that came. */
export async function* logLines<Log extends keyof Logs>(
  transport: Transport,
  unit: string,
  log: Log,
  options: Logs[Log]['options'] & { follow?: boolean | undefined },
): AsyncGenerator<Logs[Log]['line']> {
  if (!options.follow) {
    yield* (await logPage(transport, unit, log, options)).lines
    return
  }
  const { query, rest } = askedOf(options)
  let after = options.since
  for (let lost = 0; ; ) {
    try {
      const asked = { ...query, since: after, follow: true }
      const call = { method: 'GET' as const, path: `${unit}/${log}`, query: asked, ...rest }
      for await (const { event, data, id } of transport.events(call)) {
        if (event === 'end') return
        yield data as Logs[Log]['line']
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

function askedOf(options: FollowEgressOptions) {
  const { follow: _follow, since, limit, decision, ...rest } = options
  return { query: { since, limit, decision }, rest }
}
