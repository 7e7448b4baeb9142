// Watching a folder: the stream of the API, as this interface tells it. The one form is a stream to the client; in the
// other the door collects what changed until the client asks.

import { randomBytes } from 'node:crypto'
import { posix } from 'node:path'
import { Code, ConnectError } from '@connectrpc/connect'
import { notFound, type AppError } from '../../../contract/errors.ts'
import type { FileChange } from '../../../contract/file-changes.ts'
import { MINUTE } from '../../../lib/clock.ts'
import { createByteQueue } from '../../../lib/concurrency/byte-queue.ts'
import { callerGone, toAppError } from '../../http/errors.ts'
import { isEventStream, type StreamEvent } from '../../http/sse.ts'
import { runStreamed } from '../run.ts'
import type { SandboxCall } from '../sandbox-call.ts'
import { entryAt } from './entries.ts'
import type { Answer } from './rpc.ts'

export type Watched = { path: string; recursive: boolean; includeEntry: boolean }

/** Changes that wait for a reader; then the engine is held back, which tells what it had to leave out. */
const WAITING = 1000

const types: Record<string, number> = { create: 1, write: 2, remove: 3, rename: 4, chmod: 5 }

type Change = { type: number; path: string }
type Told = { kind: 'ready' } | { kind: 'change'; change: Change }

/** Yields once it watches, and then each change. Throws where changes were lost, or the folder cannot be watched. */
export async function* watch(
  call: SandboxCall,
  { path, recursive }: Watched,
  signal: AbortSignal,
): AsyncGenerator<Told> {
  const told = createByteQueue<Told>(WAITING, () => 1)
  const left = new AbortController()
  let failure: unknown = null
  const { operations, sender, unitId } = call
  const read = createReader()
  const running = runStreamed(
    operations,
    sender,
    {
      route: 'GET /v1/units/{id}/files/watch',
      input: { params: { id: unitId }, query: { path, recursive: String(recursive) } },
      signal: AbortSignal.any([signal, left.signal]),
      wantsStream: true,
    },
    async (stream) => {
      if (!isEventStream(stream)) throw new TypeError('a watch answers with events')
      await stream.streamEvents(async (event) => {
        for (const each of read(event)) await told.push(each)
      })
    },
  )
    .catch((error: unknown) => {
      failure = error
    })
    .finally(() => told.end())
  try {
    yield* told
    await running
    if (failure !== null) throw signal.aborted ? signal.reason : failure
  } finally {
    left.abort(callerGone())
    told.end()
  }
}

/** Files come under such a name until all of them is there. */
const UNFINISHED = /^\.berth-[A-Za-z0-9]{6}$/

/**
 * Leaves out what this interface has no word for: a change of the folder itself, its end, and files that are not all there
 * yet. One that has just become complete was created and written, as its watchers expect.
 */
function createReader(): (event: StreamEvent) => Told[] {
  let isComplete = false
  return ({ event, data }) => {
    if (event === 'ready') return [{ kind: 'ready' }]
    if (event === 'overflow')
      throw new ConnectError('Some changes were lost: list the directory again.', Code.ResourceExhausted)
    const type = types[event]
    const { path, pathEncoding } = data as FileChange
    if (type === undefined || path === '' || pathEncoding !== undefined) return []
    if (UNFINISHED.test(posix.basename(path))) {
      isComplete ||= event === 'rename'
      return []
    }
    const isReplaced = isComplete && event === 'create'
    if (isReplaced) isComplete = false
    const seen = isReplaced ? [type, types['write'] ?? type] : [type]
    return seen.map((each) => ({ kind: 'change', change: { type: each, path } }))
  }
}

/** With what is at the path by now, where that is asked for. */
export async function toEvent(call: SandboxCall, watched: Watched, { type, path }: Change): Promise<Answer> {
  const isThere = type !== types['remove'] && type !== types['rename']
  if (!watched.includeEntry || !isThere) return { name: path, type }
  const entry = await entryAt(call, posix.join(watched.path, path)).catch((error: unknown) => {
    if (toAppError(error).status !== 404) throw error
    return null
  })
  return { name: path, type, ...(entry && { entry }) }
}

type Watcher = {
  ended: Promise<void>
  watched: Watched
  changes: Change[]
  failure: AppError | ConnectError | null
  stop: () => void
}

export type Watchers = {
  /** Resolves once the folder is watched. */
  create: (call: SandboxCall, watched: Watched) => Promise<string>
  /** Takes what has changed since the last time. Throws `not_found`, or why there is nothing more to come. */
  take: (call: SandboxCall, id: string) => Promise<Answer[]>
  remove: (call: SandboxCall, id: string) => void
}

const MAX_WATCHERS = 64
const MAX_CHANGES = 20_000
/** After the end of its watch. */
const KEPT_MS = 10 * MINUTE

export function createWatchers(): Watchers {
  const byUnit = new Map<string, Map<string, Watcher>>()
  const find = ({ unitId }: SandboxCall, id: string) => {
    const watcher = byUnit.get(unitId)?.get(id)
    if (!watcher) throw notFound('watcher', id)
    return watcher
  }
  const forget = ({ unitId }: SandboxCall, id: string) => {
    const ofUnit = byUnit.get(unitId)
    ofUnit?.delete(id)
    if (ofUnit?.size === 0) byUnit.delete(unitId)
  }
  const remove = (call: SandboxCall, id: string) => {
    find(call, id).stop()
    forget(call, id)
  }
  /** A client that comes back soon learns why its watch is over. */
  const forgetLater = async (call: SandboxCall, id: string, { ended }: Watcher) => {
    await ended
    await call.app.clock.sleep(KEPT_MS, call.stopping).catch(() => {})
    forget(call, id)
  }
  return {
    remove,
    create: async (call, watched) => {
      const ofUnit = byUnit.get(call.unitId) ?? new Map<string, Watcher>()
      if (ofUnit.size >= MAX_WATCHERS)
        throw new ConnectError(`A sandbox has at most ${MAX_WATCHERS} watchers.`, Code.ResourceExhausted)
      const id = randomBytes(8).toString('hex')
      const watcher = await startWatcher(call, watched)
      byUnit.set(call.unitId, ofUnit.set(id, watcher))
      void forgetLater(call, id, watcher)
      return id
    },
    take: async (call, id) => {
      const { watched, changes, failure } = find(call, id)
      const taken = changes.splice(0)
      if (taken.length === 0 && failure !== null) throw failure
      const events: Answer[] = []
      for (const change of taken) events.push(await toEvent(call, watched, change))
      return events
    },
  }
}

/** Goes on when the call that made it is over. */
async function startWatcher(call: SandboxCall, watched: Watched): Promise<Watcher> {
  const stopped = new AbortController()
  const begun = Promise.withResolvers<void>()
  const changes: Change[] = []
  const collect = async () => {
    for await (const told of watch(call, watched, AbortSignal.any([call.stopping, stopped.signal]))) {
      if (told.kind === 'ready') begun.resolve()
      else if (changes.length < MAX_CHANGES) changes.push(told.change)
      else throw new ConnectError('Some changes were lost: list the directory again.', Code.ResourceExhausted)
    }
  }
  const ended = collect().then(
    () => begun.resolve(),
    (error: unknown) => {
      watcher.failure = error instanceof ConnectError ? error : toAppError(error)
      begun.reject(error)
    },
  )
  const watcher: Watcher = { watched, changes, failure: null, ended, stop: () => stopped.abort(callerGone()) }
  await begun.promise
  return watcher
}
