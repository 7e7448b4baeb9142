// Calls to a Kubernetes API server with JSON over HTTPS. Berth uses a few kinds of objects, so it has no client library: the
// published one has 68 packages and 150 MB of memory.

import type { IncomingMessage } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import { readFile } from 'node:fs/promises'
import { type Clock, SECOND } from '../lib/clock.ts'
import type { Address } from '../lib/setting-values.ts'

export type ApiAccess = Address & {
  /** The certificates that the API server's is checked with, in PEM. */
  caFile: string
  /** A service account's token. The kubelet replaces the file within the hour, so it is read for each call. */
  tokenFile: string
}

/** An object of Kubernetes, of which only what is named here is known. */
export type KubeObject = {
  metadata: {
    name: string
    namespace?: string
    uid?: string
    resourceVersion?: string
    labels?: Record<string, string>
    annotations?: Record<string, string>
    deletionTimestamp?: string
  }
}

export type Call = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** With `pathOf`, where a name comes from outside. */
  path: string
  query?: Record<string, string> | undefined
  body?: unknown
  signal?: AbortSignal | undefined
}

/** The API server refused a call. */
export class ApiError extends Error {
  readonly status: number
  /** A word of Kubernetes: `NotFound`, `Conflict`, `AlreadyExists`, `Expired`. */
  readonly reason: string
  /** How long it asks to be left alone; null: it does not say. */
  readonly retryAfterMs: number | null

  constructor({
    status,
    reason,
    message,
    retryAfterMs = null,
  }: {
    status: number
    reason: string
    message: string
    retryAfterMs?: number | null
  }) {
    super(`${message} (${status} ${reason})`)
    this.status = status
    this.reason = reason
    this.retryAfterMs = retryAfterMs
  }
}

export type Api = {
  /** Returns the answer's JSON. Throws `ApiError` for a refusal, any other error if no answer came in time. */
  call(call: Call): Promise<unknown>
  /** Returns the answer as it comes, for a watch. Throws as `call`. Destroy it once it is not read any more. */
  open(call: Call): Promise<IncomingMessage>
  /** Ends connections that are kept open. */
  close(): void
}

const ANSWER_WITHIN_MS = 15 * SECOND
/** A few hundred nodes with all their facts are some megabytes. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
const MAX_CONNECTIONS = 16

export function openApi({ host, port, caFile, tokenFile }: ApiAccess): Api {
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS, minVersion: 'TLSv1.2' })

  const open = async ({ method, path, query, body, signal }: Call): Promise<IncomingMessage> => {
    const [ca, token] = await Promise.all([readFile(caFile, 'utf8'), readFile(tokenFile, 'utf8')])
    const text = body === undefined ? undefined : JSON.stringify(body)
    const search = query && Object.keys(query).length > 0 ? `?${new URLSearchParams(query).toString()}` : ''
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const request = httpsRequest({
      agent,
      ca,
      host,
      port,
      method,
      path: path + search,
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${token.trim()}`,
        ...(text === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      },
      ...(signal ? { signal } : {}),
    })
    // Of the headers alone: a watch goes on.
    const tooLong = setTimeout(
      () => request.destroy(new Error('the API server does not answer')),
      ANSWER_WITHIN_MS,
    )
    request.on('response', resolve)
    request.on('error', reject)
    request.end(text)
    const response = await promise.finally(() => clearTimeout(tooLong))
    // From here on its own 'error' says what happens.
    response.on('error', () => {})
    const status = response.statusCode ?? 0
    if (status >= 200 && status < 300) return response
    throw refusalOf(status, response.headers['retry-after'], await readAll(response).catch(() => ''))
  }

  return {
    open,
    call: async (call) => JSON.parse(await readAll(await open(call))) as unknown,
    close: () => agent.destroy(),
  }
}

async function readAll(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  let length = 0
  const tooLong = setTimeout(() => response.destroy(new Error('the answer takes too long')), ANSWER_WITHIN_MS)
  try {
    for await (const part of response as AsyncIterable<Buffer>) {
      length += part.length
      if (length > MAX_ANSWER_BYTES) throw new Error('the answer is too long')
      parts.push(part)
    }
  } finally {
    clearTimeout(tooLong)
  }
  return Buffer.concat(parts).toString('utf8')
}

const LONGEST_MESSAGE = 500

function refusalOf(status: number, retryAfter: string | undefined, text: string): ApiError {
  const said = statusOf(text)
  const seconds = Number(retryAfter)
  return new ApiError({
    status,
    reason: said.reason ?? 'Unknown',
    message: (said.message ?? `the API server answered ${status}`).slice(0, LONGEST_MESSAGE),
    retryAfterMs: retryAfter !== undefined && Number.isFinite(seconds) ? seconds * SECOND : null,
  })
}

/** Of a body that may be another program's. */
function statusOf(text: string): { reason?: string; message?: string } {
  try {
    const { reason, message } = JSON.parse(text) as Record<string, unknown>
    return {
      ...(typeof reason === 'string' ? { reason } : {}),
      ...(typeof message === 'string' ? { message } : {}),
    }
  } catch {
    return {}
  }
}

/** A path with its parts escaped: `pathOf('api', 'v1', 'nodes', name)`. */
export function pathOf(...parts: string[]): string {
  return parts.map((part) => `/${encodeURIComponent(part)}`).join('')
}

/** Returns null for an object that is not there. */
export async function getObject<T extends KubeObject>(api: Api, path: string): Promise<T | null> {
  return await unless('NotFound', api.call({ method: 'GET', path }) as Promise<T>)
}

/** Returns whether this call made it; false if one of that name is there. */
export async function createObject(api: Api, path: string, body: KubeObject): Promise<boolean> {
  return (await unless('AlreadyExists', api.call({ method: 'POST', path, body }))) !== null
}

/**
 * Deletes an object, only that one and not another of its name that came after it. One that is gone is no error.
 *
 * @param graceS How long a pod is given to end; null: as long as it says itself.
 */
export async function deleteObject(
  api: Api,
  path: string,
  { uid, graceS = null }: { uid?: string | undefined; graceS?: number | null },
): Promise<void> {
  const body = {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    ...(uid === undefined ? {} : { preconditions: { uid } }),
    ...(graceS === null ? {} : { gracePeriodSeconds: graceS }),
  }
  const deleted = api.call({ method: 'DELETE', path, body })
  // Another one has its name: the one that was meant is gone.
  await unless('Conflict', unless('NotFound', deleted))
}

const TRIES = 6
const PAUSE_MS = 50

/**
 * Changes an object that others change too: it is read again and `change` is called again as often as another write came
 * first, six times at most.
 *
 * @param path Of the object, or of its status.
 * @param change Returns the object as it is to be; null: it is right already.
 * @returns The object as it is then; null if there is none.
 */
export async function changeObject<T extends KubeObject>(
  api: Api,
  { path, change, clock }: { path: string; change: (object: T) => T | null; clock: Clock },
): Promise<T | null> {
  for (let tries = 1; ; tries += 1) {
    const found = await getObject<T>(api, path)
    const wanted = found && change(structuredClone(found))
    if (!wanted) return found
    try {
      return (await api.call({ method: 'PUT', path, body: wanted })) as T
    } catch (error) {
      if (!hasReason(error, 'Conflict') || tries === TRIES) throw error
      await clock.sleep(PAUSE_MS * tries * (0.5 + Math.random()))
    }
  }
}

export function hasReason(error: unknown, reason: string): error is ApiError {
  return error instanceof ApiError && error.reason === reason
}

async function unless<T>(reason: string, called: Promise<T>): Promise<T | null> {
  try {
    return await called
  } catch (error) {
    if (hasReason(error, reason)) return null
    throw error
  }
}
