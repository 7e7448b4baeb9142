// One request over the engine's socket by HTTP, with the ways it can fail made into EngineErrors (errors.ts).

import { type Agent, type IncomingMessage, request as httpRequest } from 'node:http'
import { decodeFrames, type Frame } from './frames.ts'
import { EPOCH_HEADER, KEEP_ALIVE_MS } from './protocol.ts'
import { engineErrorIn, silenceError, toEngineError } from './errors.ts'

type Question = { agent: Agent; socketPath: string; operation: string; body: string; epoch?: number }

/** The answer as it travels. The connection is given up at the deadline; the operation itself goes on. */
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
 * The frames of a streamed answer, read only as fast as they are taken; an error frame throws. Rejects with
 * the signal's reason when it aborts. Leaving the loop early closes the connection, which the engine takes
 * as the end of its caller.
 */
export async function* askForFrames(
  question: Question & { signal: AbortSignal | undefined },
): AsyncGenerator<Frame> {
  const { operation, signal } = question
  const given = new AbortController()
  const gone = signal ? AbortSignal.any([signal, given.signal]) : given.signal
  let waiting = true
  // Only silence while we wait counts: a reader that takes its time also hears nothing.
  const timer = setTimeout(() => {
    if (waiting) given.abort(silenceError(operation))
    else timer.refresh()
  }, 3 * KEEP_ALIVE_MS)
  try {
    const response = await send(question, gone)
    if (response.statusCode !== 200) throw engineErrorIn(JSON.parse(await readAll(response)))
    for await (const frame of decodeFrames(response)) {
      waiting = false
      if (frame.type === 'error') throw engineErrorIn(JSON.parse(frame.data.toString('utf8')))
      if (frame.type !== 'keepAlive') yield frame
      waiting = true
      timer.refresh()
    }
  } catch (error) {
    gone.throwIfAborted()
    throw toEngineError(error)
  } finally {
    clearTimeout(timer)
    given.abort()
  }
}

async function send(question: Question, signal: AbortSignal): Promise<IncomingMessage> {
  const { agent, socketPath, operation, body, epoch } = question
  const answered = Promise.withResolvers<IncomingMessage>()
  const request = httpRequest(
    {
      agent,
      socketPath,
      path: `/${operation}`,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        ...(epoch === undefined ? {} : { [EPOCH_HEADER]: epoch }),
      },
      signal,
    },
    answered.resolve,
  )
  request.once('error', answered.reject)
  // Once it has answered, a broken connection shows on the response.
  request.on('error', () => {})
  request.end(body)
  return await answered.promise
}

async function readAll(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
