// A port of a unit for a caller of the API. The caller is let in here; what it sends then goes through the gateway, as a visit.

import type { Duplex } from 'node:stream'
import type { App } from '../../app.ts'
import { unavailable } from '../../contract/errors.ts'
import type { PortCaller } from '../../contract/port-host.ts'
import type { Caller } from '../credentials/caller.ts'
import { useUnit } from './activity/use-unit.ts'

const RETRY_AFTER_S = 2

/** Wakes the unit, and returns a connection for one request in HTTP/1.1. Whether the port is open only its answer shows. */
export async function openPort(
  app: App,
  caller: Caller,
  id: string,
  asked: PortCaller & { port: number },
): Promise<Duplex> {
  // How long the request is a use of the unit the gateway decides, as for every visit.
  const unitId = await useUnit(app, caller, id, 'no port of it can be reached', async (unit) => unit.id)
  try {
    if (app.reachPort) return await app.reachPort({ unitId, ...asked })
  } catch (error) {
    app.log.warn({ err: error, unitId }, 'the gateway did not take a call to a port')
  }
  throw unavailable('The gateway is away for a moment; send the call again.', RETRY_AFTER_S)
}
