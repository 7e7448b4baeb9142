// Runs what a client asks for as an operation of the API, through the one wrapper, with its audit row, rates, policy and
// errors.

import type { Caller } from '../../domain/credentials/caller.ts'
import type { OperationRequest, Operations } from '../operation.ts'
import type { RawInput, Route, Streamed } from '../route.ts'
import { routes } from '../routes.ts'

/** What every operation of one request is called with. */
export type Sender = Pick<OperationRequest, 'requestId' | 'presented' | 'peer'> & {
  caller: Caller
  client: NonNullable<OperationRequest['client']>
  /** Whether an operation has been run for it, which has an audit row whatever becomes of it. */
  progress: { hasRun: boolean }
}

export function newSender(sender: Omit<Sender, 'progress'>): Sender {
  return { ...sender, progress: { hasRun: false } }
}

/** The input, as a call over HTTP would send it. `body` is a value, sent as JSON, or bytes. */
export type Input = {
  params?: Record<string, string>
  query?: Record<string, string | string[]>
  body?: unknown
}

export type Asked = {
  /** A route of the API as `METHOD /path`, or one of the door's own. */
  route: string | Route
  input: Input | (() => Promise<Input>)
  signal: AbortSignal
  wantsStream?: boolean
  isUpgrade?: boolean
  idempotencyKey?: string
  bodyPieces?: () => AsyncIterable<Buffer>
}

/** Resolves with the JSON answer of the operation. */
export async function runOperation(operations: Operations, sender: Sender, asked: Asked): Promise<unknown> {
  let answer: unknown = null
  await run(operations, sender, asked, {
    json: (_status, body) => {
      answer = body
    },
    stream: async () => {
      throw new TypeError('this operation was not asked for a stream')
    },
  })
  return answer
}

/** Passes the stream that the operation answers with on. Resolves once it has ended. */
export async function runStreamed(
  operations: Operations,
  sender: Sender,
  asked: Asked,
  take: (stream: Streamed) => Promise<void>,
): Promise<void> {
  await run(operations, sender, asked, {
    json: () => {
      throw new TypeError('this operation was asked for a stream')
    },
    stream: take,
  })
}

async function run(
  operations: Operations,
  { caller, client, requestId, presented, peer, progress }: Sender,
  { route, input, signal, wantsStream, isUpgrade, idempotencyKey, bodyPieces }: Asked,
  reply: Parameters<Operations['runAs']>[2],
): Promise<void> {
  const found = typeof route === 'string' ? routeOf(route) : route
  const work = new AbortController()
  const whenAnswered: (() => void)[] = []
  const known = typeof input === 'function' ? {} : input
  progress.hasRun = true
  try {
    await operations.runAs(
      caller,
      {
        requestId,
        presented,
        peer,
        client,
        route: found,
        params: known.params ?? {},
        query: {},
        bodyBytes: 0,
        readBody: async () => Buffer.alloc(0),
        inputFor: async () =>
          toRaw(typeof input === 'function' ? await input() : input, idempotencyKey ?? null),
        ...(bodyPieces && { bodyPieces }),
        fromOwnPages: false,
        wantsStream: wantsStream ?? false,
        isUpgrade: isUpgrade ?? false,
        lastEventId: null,
        stripeSignature: null,
        idempotencyKey: null,
        signal: AbortSignal.any([signal, work.signal]),
        abort: (reason) => work.abort(reason),
        onceAnswered: (callback) => void whenAnswered.push(callback),
        addHeader: () => {},
      },
      reply,
    )
  } finally {
    for (const callback of whenAnswered) callback()
  }
}

function toRaw({ params = {}, query = {}, body }: Input, idempotencyKey: string | null): RawInput {
  const bytes = body === undefined ? Buffer.alloc(0) : Buffer.isBuffer(body) ? body : jsonOf(body)
  return { params, query, body: bytes, idempotencyKey }
}

function jsonOf(body: unknown): Buffer {
  return Buffer.from(JSON.stringify(body))
}

const byName = new Map(routes.map((route) => [`${route.method} ${route.path}`, route]))

function routeOf(name: string): Route {
  const route = byName.get(name)
  if (!route) throw new TypeError(`there is no operation ${name}`)
  return route
}
