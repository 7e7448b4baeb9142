// Claude Managed Agents, self-hosted environments: the vendor's own library renews leases, follows sessions and answers calls.
// It is loaded when it is needed, and is not a part of the CLI.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { insideOf } from './claude-worker.ts'
import { loadLibrary, type RunnableTool } from './claude-library.ts'
import { type LeasedQueue, type QueueOptions, QueueRefused, type Session, type WorkItem } from './queue.ts'
import { type Tool, ToolFailure } from './tools.ts'

/** Longer than a unit takes to start. */
const RECLAIM_MS = 120_000
/** A controller is heard of at once after it has accepted an item. */
const STRANDED_MS = 60_000
const POLL_MS = 999
const ID = /^[A-Za-z0-9_-]{1,128}$/

export async function createClaudeQueue(options: QueueOptions): Promise<LeasedQueue> {
  const {
    environmentId,
    environmentKey,
    url,
    workerId,
    idleMs,
    reclaimMs = RECLAIM_MS,
    strandedMs = STRANDED_MS,
    workDir = tmpdir(),
    fetch: ask = globalThis.fetch,
  } = options
  if (!ID.test(environmentId)) throw new QueueRefused('An environment has an id such as env_01AbC.')
  const { Client, statusOf, toolError } = await loadLibrary()
  const clientWith = (authToken: string, fetch = ask) =>
    new Client({
      authToken,
      fetch,
      apiKey: null,
      logLevel: 'off',
      maxRetries: 2,
      timeout: 60_000,
      ...(url && { baseURL: url }),
    })
  const client = clientWith(environmentKey)
  const { work } = client.beta.environments
  const about = { environment_id: environmentId }
  /** Since when items have been seen like this. */
  let starting = new Map<string, number>()

  return {
    vendor: 'claude',

    async poll(signal) {
      const asked = { block_ms: POLL_MS, reclaim_older_than_ms: reclaimMs, 'Anthropic-Worker-ID': workerId }
      const given = await work
        .poll(environmentId, asked, { signal, maxRetries: 0 })
        .catch((error: unknown) => {
          throw refusalOf(statusOf(error)) ?? error
        })
      return given === null || given === undefined ? null : itemOf(given)
    },

    async stranded(signal) {
      const found: WorkItem[] = []
      for await (const each of work.list(environmentId, {}, { signal })) {
        if (each.state === 'starting' && each.latest_heartbeat_at === null) found.push(itemOf(each))
      }
      // By our own clock alone: the vendor's may be another.
      const now = performance.now()
      const since = new Map(found.map(({ id }) => [id, starting.get(id) ?? now]))
      starting = since
      return found.filter(({ id }) => now - (since.get(id) ?? now) >= strandedMs)
    },

    async session(id, item, signal): Promise<Session> {
      const { sessions } = clientWith(tokenOf(item) ?? environmentKey).beta
      const session = await sessions.retrieve(id, {}, { signal }).catch((error: unknown) => {
        if (statusOf(error) === 404) return null
        throw error
      })
      const hasEnded = session === null || session.status === 'terminated' || session.archived_at !== null
      const metadata = session?.metadata ?? {}
      if (hasEnded || item === null) return { hasEnded, metadata, lacks: [], worker: null }
      const about = { environmentId, workId: item.id, sessionId: id, token: tokenOf(item) }
      return { hasEnded, metadata, ...insideOf(session, about, { url, idleMs }) }
    },

    async accept({ id }, signal) {
      await work.ack(id, about, { signal })
    },

    async run({ id: workId, sessionId, secret }, tools, signal) {
      // The library wants one, and writes nothing there: who has skills has a worker in the unit.
      const workdir = await mkdtemp(join(workDir, 'berth-agents-'))
      try {
        const { work: ours } = clientWith(environmentKey, leavingAt(signal, ask)).beta.environments
        const worker = ours.worker({
          workdir,
          environmentKey,
          memorySyncIntervalMs: null,
          tools: () => tools.map((tool) => runnable(tool, toolError)),
          ...(idleMs !== undefined && { maxIdleMs: idleMs }),
        })
        await worker.handleItem({
          workId,
          environmentId,
          sessionId,
          signal,
          ...(secret !== null && { workSecret: secret }),
        })
      } finally {
        await rm(workdir, { recursive: true, force: true })
      }
    },

    async end({ id }, signal) {
      // One that has ended already, or is another's by now, is not ours to end.
      const ignored = [404, 409, 412]
      await work.stop(id, { ...about, force: true }, { signal }).catch((error: unknown) => {
        if (!ignored.includes(statusOf(error) ?? 0)) throw error
      })
    },
  }
}

/**
 * The library ends its item however it ends. A controller that leaves in the middle of a turn must not: the vendor gives the
 * item to the next one once its lease is over.
 */
function leavingAt(signal: AbortSignal, ask: typeof fetch): typeof fetch {
  return async (input, init) => {
    const { pathname } = new URL(input instanceof Request ? input.url : input)
    if (signal.aborted && pathname.endsWith('/stop'))
      return new Response('{}', { headers: { 'content-type': 'application/json' } })
    return await ask(input, init)
  }
}

/** Null for what may pass. */
function refusalOf(status: number | null): QueueRefused | null {
  if (status === 401 || status === 403)
    return new QueueRefused(
      `The environment key was refused (${status}): make another one in the vendor's console, for this environment.`,
    )
  if (status === 404)
    return new QueueRefused(
      'The vendor knows no such environment: check its id, and whether the key is of this one.',
    )
  if (status === 400 || status === 422)
    return new QueueRefused(
      `The vendor refuses to be asked like this (${status}): a newer library may be needed.`,
    )
  return null
}

/** What comes from a queue may be anything, such as a page of a proxy. */
function itemOf(given: unknown): WorkItem {
  const { id, data, secret } = (typeof given === 'object' ? given : {}) as {
    id?: unknown
    data?: { type?: unknown; id?: unknown } | null
    secret?: unknown
  }
  if (typeof id !== 'string' || !ID.test(id))
    throw new Error('the queue answered something that is no work item')
  const { type, id: sessionId } = data ?? {}
  const isSession = type === 'session' && typeof sessionId === 'string' && ID.test(sessionId)
  return {
    id,
    kind: typeof type === 'string' ? type : 'unknown',
    sessionId: isSession ? sessionId : null,
    secret: typeof secret === 'string' && secret !== '' ? secret : null,
  }
}

/** The token of an item is in its secret, as base64url of JSON. */
function tokenOf(item: WorkItem | null): string | null {
  if (item === null || item.secret === null) return null
  try {
    const told = JSON.parse(Buffer.from(item.secret, 'base64url').toString()) as {
      sessions_token?: unknown
    } | null
    return typeof told?.sessions_token === 'string' && told.sessions_token !== '' ? told.sessions_token : null
  } catch {
    return null
  }
}

type MakeError = (message: string) => Error

function runnable(tool: Tool, toolError: MakeError): RunnableTool {
  const { name, description, properties, required, run } = tool
  return {
    type: 'custom',
    name,
    description,
    input_schema: { type: 'object', properties, required },
    parse: (content) => content,
    run: async (input, call) => {
      try {
        const signal = call?.signal ?? undefined
        return await run({ id: call?.toolUse?.id ?? crypto.randomUUID(), input: input ?? {}, signal })
      } catch (error) {
        if (error instanceof ToolFailure) throw toolError(error.message)
        throw error
      }
    },
  }
}
