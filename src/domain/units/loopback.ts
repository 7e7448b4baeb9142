// A visit of a port at which something listens for the unit itself alone. There is no caller: a visitor who knows the unit's name for
// ports may visit all of them (contract/port-host.ts).

import type { App } from '../../app.ts'
import { PORT_HOST_STACK } from '../../contract/port-host.ts'
import { isEngineError } from '../../engine/errors.ts'
import { findUnitOfAnyTeam } from '../../store/units.ts'
import { machineRef } from './model/machine.ts'

/** Returns the port at the unit's address that leads there; null if there is none. */
export async function openLoopback(app: App, id: string, port: number): Promise<number | null> {
  const unit = await findUnitOfAnyTeam(app.db, { id, now: app.clock.now() })
  if (unit?.state !== 'running' || unit.stackName !== PORT_HOST_STACK) return null
  try {
    return await app.fleet.engineOf(unit).openLoopback(machineRef(unit), port)
  } catch (error) {
    if (!isEngineError(error)) throw error
    app.log.info({ unitId: id, port, reason: error.publicMessage }, 'a port of the loopback was not opened')
    return null
  }
}
