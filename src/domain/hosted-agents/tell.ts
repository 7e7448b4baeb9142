// What the controller of an environment tells, written down for people: the state of its queue, and its sessions.

import type { App } from '../../app.ts'
import type { HostedSessionState, HostedState } from '../../contract/hosted-agents.ts'
import {
  forgetHostedSessions,
  type HostedEnvironmentsTable,
  noteHostedSession,
  noteHostedState,
  restHostedSessions,
} from '../../store/hosted-agents.ts'
import { tellChanged } from '../transactions/changes.ts'

type Environment = Pick<HostedEnvironmentsTable, 'id' | 'team_id' | 'version'>

export async function tellHostedState(
  app: App,
  { id, team_id: teamId, version }: Environment,
  { state, note }: { state: HostedState; note: string | null },
): Promise<void> {
  const told = { id, version, state, note, noted_at: note === null ? null : app.clock.now() }
  if (await noteHostedState(app.db, told)) tellChanged(app, teamId)
}

type SessionNews = { session: string; state: HostedSessionState; note: string | null; unitId: string | null }

export async function tellHostedSession(
  app: App,
  { id, team_id: teamId }: Environment,
  { session, state, note, unitId }: SessionNews,
): Promise<void> {
  await noteHostedSession(app.db, { id, session, state, note, unitId, at: app.clock.now() })
  tellChanged(app, teamId)
}

/** Of a controller that begins: nothing is under way yet. */
export async function beginHosted(app: App, { id }: Environment): Promise<void> {
  await restHostedSessions(app.db, id)
}

/** One run of the background job. */
export async function forgetSessions(app: App): Promise<void> {
  await forgetHostedSessions(app.db)
}
