// The records that tools return: what an agent needs of a unit to continue, without what it can look up.

import { z } from 'zod'
import { stackOf, type Unit } from '../../../contract/unit.ts'
import { cleanLine } from '../clean.ts'

const REASON_LENGTH = 1000

/** Not strict: some clients refuse a whole answer because of one unknown field. */
export const unitRecordSchema = z.looseObject({
  id: z.string(),
  name: z.string(),
  stack: z.string(),
  state: z.string(),
})

export const unitsRecordSchema = z.looseObject({ units: z.array(unitRecordSchema) })

export function unitRecord(unit: Unit) {
  const { id, name, state, image, size, internalHost, endpoints, costCentsSoFar, sleepsAt } = unit
  return {
    id,
    name,
    stack: stackOf(unit),
    state,
    image,
    size,
    host: internalHost,
    ...(endpoints.length > 0 ? { urls: endpoints.map(({ url }) => url) } : {}),
    costCents: costCentsSoFar,
    ...(sleepsAt === null ? {} : { sleepsAt }),
    ...whyItStands(unit),
  }
}

function whyItStands({ error, stoppedReason, lastExit, state }: Unit) {
  return {
    ...(error === null ? {} : { error: cleanLine(error, REASON_LENGTH) }),
    ...(stoppedReason === null ? {} : { stoppedReason }),
    ...(lastExit === null || state === 'running' ? {} : { lastExit }),
  }
}

/** Returns one sentence that says what to do next, by the state of the unit. */
export function nextOf({ name, state, stoppedReason, endpoints }: Unit): string {
  switch (state) {
    case 'creating':
    case 'starting':
    case 'stopping':
      return `It is on its way: call get_unit with unit "${name}" until it is no longer ${state}.`
    case 'running':
      return endpoints.length > 0
        ? `It runs and can be visited at its URL; run_command works in it.`
        : `It runs: use run_command, write_file and read_file; expose_port gives a port a URL.`
    case 'sleeping':
      return stoppedReason === 'cap' || stoppedReason === 'credits'
        ? 'It sleeps because a limit was met; get_limits tells which. It cannot be woken before that has changed.'
        : 'It sleeps and wakes on its next use, as by run_command.'
    case 'stopped':
      return stoppedReason === 'exited'
        ? 'Its process ended: read_logs tells why, start_unit runs it again.'
        : 'start_unit runs it again.'
    case 'error':
      return 'It could not be made, and goes by itself: read "error", and create another one.'
    case 'destroying':
    case 'destroyed':
      return 'It is gone.'
  }
}
