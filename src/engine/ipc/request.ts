// One HTTP request to the engine, with failures as EngineErrors (errors.ts).

import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { decodeFrames, encodeFrame, type Frame } from './frames.ts'
import { EPOCH_HEADER, KEEP_ALIVE_MS } from './protocol.ts'
import { engineErrorIn, silenceError, toEngineError } from './errors.ts'
import type { EngineTransport } from './transport.ts'
import { whileRestarting } from './while-restarting.ts'

type Question = {
  transport: EngineTransport
  operation: string
  body: string
  epoch?: number
  /** Frames that come after the body, which is one itself then. */
  input?: AsyncIterable<Buffer>
}

/** Returns the encoded answer. The connection is closed at the deadline; the operation itself goes on. */
export async function askForJson(question: Question & { deadlineMs: number }): Promise<unknown> {
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(silenceError(question.operation)), question.deadlineMs)
  try {
    const response = await send(question, deadline.signal)
    const said: unknown = JSON.parse(await readAll(response))
    if (response.statusCode !== 200) throw engineErrorIn(said)
    return said
  } catch (error) {
    throw deadline.signal.aborted ? deadline.signal.reason : toEngineError(error)
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Yields the frames of a streamed answer, only as fast as they are read; an error frame throws. Rejects with the
 * signal's reason when it aborts. Leaving the loop early closes the connection, which tells the engine that the
 * caller is gone.
 */
export async function* askForFrames(
  question: Question & { signal: AbortSignal | undefined },
): AsyncGenerator<Frame> {
  const { operation, signal } = question
  const given = new AbortController()
  const gone = signal ? AbortSignal.any([signal, given.signal]) : given.signal
  let waiting = true
  let ended = false
  // Only silence while waiting counts: a slow reader receives nothing either.
  const timer = setTimeout(() => {
    if (waiting) given.abort(silenceError(operation))
    else timer.refresh()
  }, 3 * KEEP_ALIVE_MS)
  try {
    const response = await send(question, gone, (reason) => given.abort(reason))
    if (response.statusCode !== 200) throw engineErrorIn(JSON.parse(await readAll(response)))
    for await (const frame of decodeFrames(response)) {
      waiting = false
      if (frame.type === 'error') throw engineErrorIn(JSON.parse(frame.data.toString('utf8')))
      if (frame.type !== 'keepAlive') yield frame
      waiting = true
      timer.refresh()
    }
    ended = true
  } catch (error) {
    gone.throwIfAborted()
    throw toEngineError(error)
  } finally {
    clearTimeout(timer)
    // After its end the connection is kept for the next call.
    if (!ended) given.abort()
  }
}

/** Calls `onInputFailed` with the reason if the input breaks off before its end. */
async function send(
  question: Question,
  signal: AbortSignal,
  onInputFailed: (reason: unknown) => void = () => {},
): Promise<IncomingMessage> {
  const once = async () => await sendOnce(question, signal, onInputFailed)
  return await whileRestarting(question.transport.waitsMs, question.operation, once, { signal })
}

async function sendOnce(
  question: Question,
  signal: AbortSignal,
  onInputFailed: (reason: unknown) => void,
): Promise<IncomingMessage> {
  const { transport, operation, body, epoch, input } = question
  const answered = Promise.withResolvers<IncomingMessage>()
  const request = transport.request(
    {
      // What goes both ways has a connection of its own, which ends with it.
      ...(input ? { agent: false } : {}),
      path: `/${operation}`,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(input ? {} : { 'content-length': Buffer.byteLength(body) }),
        ...(epoch === undefined ? {} : { [EPOCH_HEADER]: epoch }),
      },
      signal,
    },
    answered.resolve,
  )
  request.once('error', answered.reject)
  // After the response has begun, a broken connection shows on the response.
  request.on('error', () => {})
  if (input) void sendFrames(request, body, input).catch(onInputFailed)
  else request.end(body)
  return await answered.promise
}

/** No faster than the engine takes them, and none before there is a connection; ends early when the connection does. */
async function sendFrames(
  request: ClientRequest,
  first: string,
  input: AsyncIterable<Buffer>,
): Promise<void> {
  await new Promise((resolve) => request.write(encodeFrame('message', first), resolve))
  for await (const frame of input) {
    if (request.destroyed) return
    if (request.write(frame)) continue
    const settled = new AbortController()
    const { signal } = settled
    await Promise.race([once(request, 'drain', { signal }), once(request, 'close', { signal })]).finally(() =>
      settled.abort(),
    )
  }
  request.end()
}

async function readAll(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
