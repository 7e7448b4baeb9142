// Watching a directory of a fake machine: what calls change in it is told, and what its programs change is not.

import type { FileChange, OnChanges } from '../../../src/engine/engine.ts'
import { EngineError } from '../../../src/engine/errors.ts'
import { untilAborted } from './faults.ts'
import { listIn } from './files.ts'
import type { FakeMachine } from './machine.ts'
import type { Clock } from '../../../src/lib/clock.ts'

type Change = Extract<FileChange, { path: string }>
type Watch = { above: string; recursive: boolean; tell: (change: Change) => void; end: () => void }

const watches = new WeakMap<FakeMachine, Set<Watch>>()

/** `path`: absolute. */
export function tellChange(machine: FakeMachine, { path, ...change }: Change): void {
  for (const watch of watches.get(machine) ?? []) {
    if (`${path}/` === watch.above && change.type === 'remove') watch.end()
    const below = path.startsWith(watch.above) ? path.slice(watch.above.length) : ''
    if (below !== '' && (watch.recursive || !below.includes('/'))) watch.tell({ ...change, path: below })
  }
}

export async function watchIn(
  machine: FakeMachine,
  path: string,
  recursive: boolean,
  { onBegun, onChanges }: OnChanges,
  { clock, gone }: { clock: Clock; gone: AbortSignal },
): Promise<void> {
  listIn(machine.files, path, clock)
  const removed = Promise.withResolvers<void>()
  let telling: Promise<void> = Promise.resolve()
  const watch: Watch = {
    above: path === '/' ? path : `${path}/`,
    recursive,
    tell: (change) => void (telling = telling.then(async () => await onChanges([change]))),
    end: removed.resolve,
  }
  const all = watches.get(machine) ?? new Set()
  watches.set(machine, all.add(watch))
  const ended = AbortSignal.any([gone, machine.run?.killed.signal ?? gone])
  try {
    onBegun()
    await untilAborted(ended, async () => await removed.promise)
    await telling
  } catch (error) {
    gone.throwIfAborted()
    throw ended.aborted ? new EngineError('not_running', 'The machine ended meanwhile.') : error
  } finally {
    all.delete(watch)
  }
}
