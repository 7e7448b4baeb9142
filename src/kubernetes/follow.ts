// Follows a list of objects of Kubernetes: a list, then a watch, and again a list after each watch, however it ended. So
// nothing depends on a watch that was whole. While the API server is away, what was last known stands.

import type { IncomingMessage } from 'node:http'
import { type Clock, SECOND } from '../lib/clock.ts'
import { createLineSplitter } from '../lib/line-splitter.ts'
import type { Log } from '../lib/log.ts'
import { type Api, ApiError, hasReason, type KubeObject } from './api.ts'

/** By namespace and name. */
export type Objects<T extends KubeObject> = ReadonlyMap<string, T>

export type Followed<T extends KubeObject> = {
  /** As of the last answer; null before the first complete list. */
  objects(): Objects<T> | null
  /** Resolves once it has stopped. */
  stopped: Promise<void>
}

type Following<T extends KubeObject> = {
  /** Of the collection. */
  path: string
  query?: Record<string, string>
  /** How long a watch is, before it is drawn up to twice as long. */
  watchS?: number
  /** Called after each complete list and each change, one at a time; an error is logged. */
  changed?: (objects: Objects<T>) => void
}

/** A watch ends after this time or up to twice as long, which spreads the lists of several servers. */
const WATCH_S = 240
/** The API server sends a bookmark each minute: a watch without any is on a server that is gone. */
const SILENT_MS = 90 * SECOND
/** A watch that ends sooner counts as a failure. */
const LASTED_MS = SECOND
const FIRST_PAUSE_MS = SECOND / 2
const LONGEST_PAUSE_MS = 30 * SECOND
const PAGE = 500
/** An object with all that is said about it; etcd refuses larger ones. */
const MAX_EVENT_BYTES = 8 * 1024 * 1024

/** Until the signal aborts. Never throws. */
export function followObjects<T extends KubeObject>(
  api: Api,
  following: Following<T>,
  { clock, log, signal }: { clock: Clock; log: Log; signal: AbortSignal },
): Followed<T> {
  const { path, query = {}, watchS = WATCH_S, changed = () => {} } = following
  let known: Map<string, T> | null = null
  let failures = 0

  const tell = () => {
    try {
      if (known) changed(known)
    } catch (error) {
      log.error({ err: error, path }, 'change of an object of Kubernetes could not be taken in')
    }
  }

  /** Returns the version that it is of. */
  const list = async (): Promise<string> => {
    const all = new Map<string, T>()
    let version = ''
    let next: string | undefined = ''
    while (next !== undefined) {
      const page = { ...query, limit: String(PAGE), ...(next === '' ? {} : { continue: next }) }
      const answer = (await api.call({ method: 'GET', path, query: page, signal })) as {
        metadata: { resourceVersion: string; continue?: string }
        items: T[]
      }
      for (const item of answer.items) all.set(keyOf(item), item)
      version = answer.metadata.resourceVersion
      next = answer.metadata.continue || undefined
    }
    known = all
    tell()
    return version
  }

  const take = (line: string): void => {
    const { type, object } = JSON.parse(line) as { type: string; object: T }
    if (type === 'BOOKMARK') return
    if (type === 'ERROR') throw errorOf(object)
    if (type === 'DELETED') known?.delete(keyOf(object))
    else known?.set(keyOf(object), object)
    tell()
  }

  /** Resolves when the watch was closed. */
  const watch = async (version: string): Promise<void> => {
    const timeoutS = Math.round(watchS * (1 + Math.random()))
    const asked = {
      ...query,
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: version,
      timeoutSeconds: String(timeoutS),
    }
    const response = await api.open({ method: 'GET', path, query: asked, signal })
    const beganMs = clock.monotonicMs()
    try {
      await readEvents(response, { take, clock })
    } finally {
      response.destroy()
      failures = clock.monotonicMs() - beganMs >= LASTED_MS ? 0 : failures + 1
    }
  }

  const follow = async (): Promise<void> => {
    while (!signal.aborted) {
      let askedMs = 0
      try {
        await watch(await list())
      } catch (error) {
        if (signal.aborted) return
        // A list that is too old by now is no fault of the server's.
        if (!hasReason(error, 'Expired') && !hasReason(error, 'Gone')) {
          failures += 1
          log.warn({ err: error, path, failures }, 'objects of Kubernetes are not followed; will be retried')
        }
        if (error instanceof ApiError) askedMs = error.retryAfterMs ?? 0
      }
      await clock.sleep(Math.max(askedMs, pauseMs(failures)), signal).catch(() => {})
    }
  }
  return { objects: () => known, stopped: follow() }
}

/** Somewhere in the upper half, so that servers that failed together do not come back together. */
function pauseMs(failures: number): number {
  const ms = Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS)
  return ms * (0.5 + Math.random() / 2)
}

async function readEvents(
  response: IncomingMessage,
  { take, clock }: { take: (line: string) => void; clock: Clock },
): Promise<void> {
  const ended = new AbortController()
  let heardMs = clock.monotonicMs()
  const endIfSilent = async (): Promise<void> => {
    for (;;) {
      const leftMs = heardMs + SILENT_MS - clock.monotonicMs()
      if (leftMs <= 0)
        return void response.destroy(new Error('nothing was heard of a watch for 90 s: it is dead'))
      await clock.sleep(leftMs, ended.signal)
    }
  }
  endIfSilent().catch(() => {})
  const lines = createLineSplitter(MAX_EVENT_BYTES, () => {
    throw new Error('an event is too long')
  })
  try {
    for await (const part of response as AsyncIterable<Buffer>) {
      heardMs = clock.monotonicMs()
      for (const line of lines.add(part)) if (line !== '') take(line)
    }
  } finally {
    ended.abort()
  }
}

function keyOf({ metadata: { namespace = '', name } }: KubeObject): string {
  return namespace === '' ? name : `${namespace}/${name}`
}

/** Of what an event of the type ERROR has instead of an object. */
function errorOf(said: unknown): ApiError {
  const { code = 500, reason = 'Unknown', message = '' } = said as Record<string, never>
  return new ApiError({ status: code, reason, message })
}
