// Tells what changes in a directory of a unit. Its beginning is a use of the unit, which wakes for it; an open watch alone is
// not: the unit falls asleep under it, and goes on telling when it wakes.

import type { App } from '../../app.ts'
import {
  type FileChange as ShownChange,
  type fileChangeEvents,
  type WatchEnd,
} from '../../contract/file-changes.ts'
import { namedPath } from '../../contract/file-paths.ts'
import type { FileChange } from '../../engine/engine.ts'
import { isEngineError } from '../../engine/errors.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import type { Caller } from '../credentials/caller.ts'
import { useUnit } from './activity/use-unit.ts'
import { isOver, refuseFile } from './file-refusals.ts'
import { engineFailure } from './lifecycle/failures.ts'
import { machineRef } from './model/machine.ts'

type Told =
  | { event: Exclude<keyof typeof fileChangeEvents, 'ready' | 'overflow' | 'end'>; data: ShownChange }
  | { event: 'ready'; data: Record<string, never> }
  | { event: 'overflow'; data: { lost: 'changes' | 'directories' } }

/** Resolves with why it ended. `tell` is awaited, so a reader that is slow may get `overflow`. */
export async function watchFiles(
  app: App,
  caller: Caller,
  id: string,
  { path, recursive }: { path: string; recursive: boolean },
  tell: (told: Told) => Promise<void>,
  signal: AbortSignal,
): Promise<WatchEnd> {
  const { unit, watching } = await useUnit(
    app,
    caller,
    id,
    'no directory in it can be watched',
    async (record) => await begin(app, record, { path, recursive }, tell, signal),
  )
  try {
    await watching
    return 'removed'
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (isOver(error) || isEngineError(error, 'run_ended')) return 'stopped'
    if (isEngineError(error, 'timeout')) return 'time'
    throw engineFailure(error, unit)
  }
}

/** Returns once it watches: what fails before that is no end of a watch. */
async function begin(
  app: App,
  unit: UnitRecord,
  { path, recursive }: { path: string; recursive: boolean },
  tell: (told: Told) => Promise<void>,
  signal: AbortSignal,
): Promise<{ unit: UnitRecord; watching: Promise<void> }> {
  const begun = Promise.withResolvers<void>()
  let ready: Promise<void> = Promise.resolve()
  const told = {
    onBegun: () => {
      ready = tell({ event: 'ready', data: {} })
      ready.catch(() => {})
      begun.resolve()
    },
    onChanges: async (changes: FileChange[]) => {
      await ready
      for (const change of changes) await tell(toldOf(change))
    },
  }
  const watching = app.fleet.engineOf(unit).watchFiles(machineRef(unit), path, recursive, told, signal)
  watching.then(begun.resolve, begun.reject)
  await begun.promise.catch(refuseFile(unit, path))
  return { unit, watching }
}

function toldOf(change: FileChange): Told {
  if (change.type === 'overflow') return { event: 'overflow', data: { lost: change.lost } }
  const { type, path, isDirectory } = change
  return { event: type, data: { ...namedPath(path), isDirectory } }
}
