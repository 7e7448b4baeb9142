// How far the creations are that this process runs: from the steps of each, and from its host what becomes of its image. In
// memory alone: a process that takes a creation over says where it goes on.

import type { App } from '../../../app.ts'
import type { CreationStage, UnitProgress } from '../../../contract/unit.ts'
import type { PullProgress, PullStage } from '../../../engine/engine.ts'
import { SECOND } from '../../../lib/clock.ts'
import { followReports } from '../../hosts/follow-reports.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'

/** By the name of the step. What an image waits for is said by its host. */
const stagesOfSteps: Readonly<Record<string, CreationStage>> = {
  'create.image': 'preparing',
  'create.machine': 'preparing',
  'create.order': 'waiting',
  'create.start': 'starting',
  'create.ready': 'checking',
}

const imageStages: ReadonlySet<CreationStage> = new Set([
  'waiting',
  'downloading',
  'unpacking',
  'building',
] satisfies PullStage[])

/** Called as each step of an operation begins. */
export function noteStep(app: App, unit: UnitRecord, step: string): void {
  const { id, teamId, createdAt, spec } = unit
  const stage = stagesOfSteps[step]
  if (stage === undefined || stage === app.creations.get(id)?.progress.stage) return
  const isChecked = spec.healthcheck !== null
  if (stage === 'checking' && !isChecked) return
  const now = app.clock.now()
  const progress = { stage, startedAt: now.toISOString(), bytes: null, log: [] }
  app.creations.set(id, { teamId, progress })
  // A creation that is quick tells of its end alone.
  const isSlow = now.getTime() - createdAt.getTime() > SECOND
  if (isSlow || stage === 'checking') app.teamEvents.emit('changed', teamId)
}

export function forgetCreation(app: App, { id }: Pick<UnitRecord, 'id'>): void {
  app.creations.delete(id)
}

/** Follows the images that creations wait for, on every host, until the signal aborts. */
export async function watchPulls(app: App, signal: AbortSignal): Promise<void> {
  const onPulls = (pulls: PullProgress[]) => {
    for (const pull of pulls) for (const id of pull.machines) notePull(app, id, pull)
  }
  await followReports(app, 'pulls', (engine, until) => engine.watchPulls(onPulls, until), signal)
}

function notePull(app: App, id: string, { stage, ageMs, bytes, lines }: PullProgress): void {
  const creation = app.creations.get(id)
  const known = creation?.progress
  // Only of a creation in progress, and not after a later step of it has begun.
  if (!creation || !known || (known.stage !== 'preparing' && !imageStages.has(known.stage))) return
  const beganMs = app.clock.now().getTime() - ageMs
  const next: UnitProgress = {
    stage,
    startedAt: known.stage === stage ? known.startedAt : new Date(beganMs).toISOString(),
    bytes: bytes && { done: Math.floor(bytes.done), total: Math.floor(bytes.total) },
    log: lines,
  }
  if (JSON.stringify(next) === JSON.stringify(known)) return
  app.creations.set(id, { ...creation, progress: next })
  app.teamEvents.emit('changed', creation.teamId)
}
