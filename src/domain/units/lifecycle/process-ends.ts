// Tells those who follow a team that a background process of its units has ended (GET /v1/events).

import type { App } from '../../../app.ts'
import type { EndedProcess } from '../../../engine/process.ts'
import { followReports } from '../../hosts/follow-reports.ts'
import { findUnitOfAnyTeam } from '../../../store/units.ts'

/** Follows all engines until the signal aborts, across restarts of an engine. What ends meanwhile is not told. */
export async function watchProcessEnds(app: App, signal: AbortSignal): Promise<void> {
  const onEnd = (ended: EndedProcess) => {
    tellEnd(app, ended).catch((error: unknown) => {
      app.log.warn({ err: error, unitId: ended.machine }, 'the end of a process was not told')
    })
  }
  const watch: Parameters<typeof followReports>[2] = (engine, until) => engine.watchProcesses(onEnd, until)
  await followReports(app, 'the ends of processes', watch, signal)
}

async function tellEnd(app: App, { machine, process }: EndedProcess): Promise<void> {
  const { id, tag, state, exitCode } = process
  if (state === 'running' || app.teamEvents.listenerCount('told') === 0) return
  const unit = await findUnitOfAnyTeam(app.db, { id: machine, now: app.clock.now() })
  if (!unit) return
  const data = { unitId: machine, id, tag, state, exitCode }
  app.teamEvents.emit('told', unit.teamId, { event: 'process', data })
}
