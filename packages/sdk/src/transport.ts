// One call to the service: its timeout, its retries and its errors. A call is repeated only if that cannot do
// anything twice: reads, PUT, DELETE, calls with an Idempotency-Key, and calls that a rate limit refused before they
// began.

import { BerthError, errorOf, errorOfEnvelope, noAnswer } from './errors.ts'
import type { Settings } from './settings.ts'
import { readEvents, type StreamEvent } from './sse.ts'
import type { AbortSignal, ReadableStream, RequestInit, Response, WebSocket } from './platform.ts'

/** Options that every method takes. */
export type CallOptions = {
  signal?: AbortSignal | undefined
  /** How long to wait until the response begins, in ms. */
  timeoutMs?: number | undefined
}

/** Of calls that make something. */
export type MakeOptions = CallOptions & {
  /** Names this call, so that it can be sent again from another place. Default: a random one. */
  idempotencyKey?: string | undefined
}

type Value = string | number | boolean | null | undefined
/** Each item of an array is sent as a parameter of that name. */
type Query = Record<string, Value | readonly string[]>

export type Call = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  query?: Query
  /** Sent as JSON; bytes as they are. */
  body?: unknown
  headers?: Record<string, string>
  idempotencyKey?: string | undefined
  /** Beside the time that every call has, in ms. */
  extraMs?: number
} & CallOptions

export type Transport = {
  /** Of the service, without a slash at its end. */
  url: string
  json: <T>(call: Call) => Promise<T>
  /** Streams the body of a response that is not JSON. Aborting the signal ends it. */
  bytes: (call: Call) => Promise<ReadableStream<Uint8Array>>
  /** Throws what its last event says went wrong. */
  events: (call: Call) => AsyncGenerator<StreamEvent>
  /** The same, resolved when the response begins. */
  openEvents: (call: Call) => Promise<AsyncGenerator<StreamEvent>>
  /** Sends what is no call of the service, such as a request to a port of a unit, and returns what answers there. Once. */
  pass: (path: string, init: RequestInit) => Promise<Response>
  /** Resolves when it is open; messages of bytes come as ArrayBuffers. */
  webSocket: (call: Call) => Promise<WebSocket>
}

/** One attempt: its answer, and what holds its deadline. */
type Attempt = { response: Response; abort: (reason: unknown) => void; inTime: () => void; end: () => void }

export function createTransport(settings: Settings): Transport {
  return {
    url: settings.url,
    json: async <T>(call: Call): Promise<T> => {
      const { response, end } = await send(settings, call, 'application/json')
      try {
        return (await response.json()) as T
      } catch (error) {
        throw call.signal?.aborted ? call.signal.reason : connectionError(settings, error)
      } finally {
        end()
      }
    },
    bytes: async (call) => {
      const { response, inTime } = await send(settings, call, '*/*')
      inTime()
      return response.body ?? new ReadableStream()
    },
    events: async function* (call) {
      yield* await openEvents(settings, call)
    },
    openEvents: async (call) => await openEvents(settings, call),
    pass: async (path, init) => await pass(settings, path, init),
    webSocket: async (call) => await openWebSocket(settings, call),
  }
}

async function pass(settings: Settings, path: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers)
  headers.set('authorization', `Bearer ${await settings.apiKey()}`)
  if (!headers.has('user-agent')) headers.set('user-agent', settings.userAgent)
  const answer = await settings.fetch(settings.url + path, { ...init, headers }).catch((error: unknown) => {
    throw init.signal?.aborted ? init.signal.reason : connectionError(settings, error)
  })
  if (answer.headers.get('x-berth-answer') === 'unit') return answer
  throw errorOf(answer.status, answer.headers, await answer.text())
}

async function openEvents(settings: Settings, call: Call): Promise<AsyncGenerator<StreamEvent>> {
  const attempt = await send(settings, call, 'text/event-stream')
  attempt.inTime()
  return eventsOf(settings, call, attempt)
}

async function* eventsOf(
  settings: Settings,
  call: Call,
  { response, abort, end }: Attempt,
): AsyncGenerator<StreamEvent> {
  const quiet = new BerthError('connection_failed', `${settings.url} has fallen silent.`)
  try {
    for await (const event of readEvents(response.body ?? new ReadableStream(), () => abort(quiet))) {
      if (event.event === 'error') throw errorOfEnvelope(event.data, { status: response.status }) ?? quiet
      yield event
    }
  } catch (error) {
    if (call.signal?.aborted) throw call.signal.reason
    throw error instanceof BerthError ? error : connectionError(settings, error)
  } finally {
    end()
  }
}

/** A WebSocket can send no header where browsers make it, so the key is offered as a protocol. */
async function openWebSocket(settings: Settings, call: Call): Promise<WebSocket> {
  const Made = settings.WebSocket
  if (!Made)
    throw new BerthError(
      'not_configured',
      'There is no WebSocket here: use Node 22 or newer, or give new Berth({ WebSocket }).',
    )
  const bearer = btoa(await settings.apiKey())
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')
  call.signal?.throwIfAborted()
  const url = settings.url.replace(/^http/, 'ws') + call.path + queryText(call.query)
  const socket = new Made(url, ['berth.v1', `base64url.bearer.authorization.berth.${bearer}`])
  socket.binaryType = 'arraybuffer'
  const opened = withResolvers<boolean>()
  socket.addEventListener('open', () => opened.resolve(true))
  socket.addEventListener('close', () => opened.resolve(false))
  socket.addEventListener('error', () => opened.resolve(false))
  const stop = () => opened.reject(call.signal?.reason)
  call.signal?.addEventListener('abort', stop, { once: true })
  const waitMs = call.timeoutMs ?? settings.timeoutMs
  const late = () => opened.reject(noAnswer(settings.url, waitMs))
  const timer = setTimeout(late, waitMs)
  try {
    if (await opened.promise) return socket
  } catch (error) {
    socket.close()
    throw error
  } finally {
    clearTimeout(timer)
    call.signal?.removeEventListener('abort', stop)
  }
  // Why it was refused is hidden from programs; the same call without a WebSocket is refused in words.
  const { end } = await send(settings, call, 'application/json').catch((error: unknown) => {
    throw isAboutUpgrade(error) ? connectionError(settings, 'the WebSocket did not open') : error
  })
  end()
  throw connectionError(settings, 'the WebSocket did not open')
}

/** Whether nothing was wrong but that the call asked for no WebSocket. */
function isAboutUpgrade(error: unknown): boolean {
  const details = error instanceof BerthError && error.code === 'validation' ? error.details : null
  return Array.isArray(details) && details.every(({ path }: { path?: string }) => path === 'upgrade')
}

/** A random name for a call. Without randomUUID, which browsers have over HTTPS alone. */
export function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}

async function send(settings: Settings, call: Call, accept: string): Promise<Attempt> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await sendOnce(settings, call, accept)
    } catch (error) {
      const waitMs = attempt < settings.retries ? waitBefore(settings, call, error, attempt) : null
      if (waitMs === null) throw error
      await sleep(waitMs, call.signal)
    }
  }
}

/** How long to wait before the call is sent again, in ms; null: it is not. */
function waitBefore(settings: Settings, call: Call, error: unknown, attempt: number): number | null {
  if (!(error instanceof BerthError)) return null
  // What a stream gave is gone.
  if (call.body instanceof ReadableStream) return null
  const isRefused = error.status === 429
  const isAway = error.status === 503 || error.code === 'connection_failed'
  const isRepeatable = call.idempotencyKey !== undefined || ['GET', 'PUT', 'DELETE'].includes(call.method)
  if (!isRefused && !(isAway && isRepeatable)) return null
  const backoffMs = 250 * 2 ** attempt * (1 + Math.random())
  const waitMs = Math.max(error.retryAfterMs ?? 0, backoffMs)
  return waitMs > settings.maxRetryAfterMs ? null : waitMs
}

async function sendOnce(settings: Settings, call: Call, accept: string): Promise<Attempt> {
  // What gives the key may fail in its own way.
  const headers = await headersOf(settings, call, accept)
  // From here on nothing waits until its end is heard of.
  call.signal?.throwIfAborted()
  const controller = new AbortController()
  const waitMs = (call.timeoutMs ?? settings.timeoutMs) + (call.extraMs ?? 0)
  const late = () => controller.abort(noAnswer(settings.url, waitMs))
  const timer = setTimeout(late, waitMs)
  const stop = () => controller.abort(call.signal?.reason)
  call.signal?.addEventListener('abort', stop, { once: true })
  const inTime = () => clearTimeout(timer)
  const end = () => {
    inTime()
    call.signal?.removeEventListener('abort', stop)
  }
  try {
    const response = await settings.fetch(settings.url + call.path + queryText(call.query), {
      method: call.method,
      headers,
      signal: controller.signal,
      // The service never redirects: a key must not be sent to another host.
      redirect: 'error',
      ...(call.body === undefined ? {} : { body: bodyOf(call.body) }),
      ...(call.body instanceof ReadableStream ? { duplex: 'half' } : {}),
    })
    if (!response.ok) throw errorOf(response.status, response.headers, await response.text())
    return { response, abort: (reason) => controller.abort(reason), inTime, end }
  } catch (error) {
    end()
    if (controller.signal.aborted) throw controller.signal.reason
    throw error instanceof BerthError ? error : connectionError(settings, error)
  }
}

async function headersOf(settings: Settings, call: Call, accept: string): Promise<Record<string, string>> {
  return {
    authorization: `Bearer ${await settings.apiKey()}`,
    accept,
    'user-agent': settings.userAgent,
    ...(call.body === undefined
      ? {}
      : { 'content-type': isBytes(call.body) ? 'application/octet-stream' : 'application/json' }),
    ...(call.idempotencyKey === undefined ? {} : { 'idempotency-key': call.idempotencyKey }),
    ...call.headers,
  }
}

function bodyOf(body: unknown): NonNullable<RequestInit['body']> {
  return isBytes(body) ? (body as NonNullable<RequestInit['body']>) : JSON.stringify(body)
}

const isBytes = (body: unknown) =>
  body instanceof Uint8Array || body instanceof Blob || body instanceof ReadableStream

function queryText(query: Query = {}): string {
  const said = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    for (const each of Array.isArray(value) ? value : [value])
      if (each !== undefined && each !== null) said.append(name, String(each))
  return said.size === 0 ? '' : `?${said.toString()}`
}

function connectionError({ url }: Settings, cause: unknown): BerthError {
  const { cause: inner, message = String(cause) } = (cause ?? {}) as {
    cause?: { message?: string; code?: string }
    message?: string
  }
  const why = inner?.message || inner?.code || message
  return new BerthError('connection_failed', `${url} cannot be reached: ${why}`, { cause })
}

export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted()
  const { promise, resolve, reject } = withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const stop = () => reject(signal?.reason as Error)
  signal?.addEventListener('abort', stop, { once: true })
  try {
    await promise
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', stop)
  }
}

/** Promise.withResolvers, which Node has since 22. */
export function withResolvers<T>(): {
  promise: Promise<T>
  resolve: (value: T | PromiseLike<T>) => void
  reject: (reason: unknown) => void
} {
  let resolve: (value: T | PromiseLike<T>) => void = () => {}
  let reject: (reason: unknown) => void = () => {}
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}
