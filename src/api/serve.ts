// Runs the operation of a route, or of a page for people, and sends its answer.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import type { App } from '../app.ts'
import { bodyBytesOf, bodyPieces, readBody } from './http/body.ts'
import { isByteStream, openByteStream, sendByteStream } from './http/byte-stream.ts'
import { readCookie } from './http/cookies.ts'
import { isWebSocketAnswer } from './http/web-socket-answer.ts'
import { logError, toAppError } from './http/errors.ts'
import { sendError, sendJson } from './http/response.ts'
import * as http from './http/request.ts'
import type { Operations } from './operation.ts'
import { type Dashboard, sendDashboardPage, sendFirstPage } from './web/dashboard.ts'
import { readFirstPage } from './web/first-view.ts'
import type { Page, PageRequest } from './web/page.ts'
import { answerPage } from './web/pages.ts'
import type { Route } from './route.ts'
import { openStream, sendEvents } from './http/sse.ts'
import { goneWith, onceClosed } from './http/gone.ts'

export type Exchange = {
  id: string
  request: IncomingMessage
  response: ServerResponse
  params: unknown
  /** The address of the client. */
  peer: string
}

export async function serveRoute(
  app: App,
  operations: Operations,
  route: Route,
  stopping: AbortSignal,
  { id, request, response, params, peer }: Exchange,
): Promise<void> {
  const gone = goneWith(response)
  const signal = AbortSignal.any([gone.signal, stopping])
  try {
    await operations.run(
      {
        ...http.senderOf(request, app.config.publicUrl),
        peer,
        requestId: id,
        route,
        params,
        query: http.queryOf(request.url ?? ''),
        readBody: () => readBody(request, route.body),
        bodyBytes: bodyBytesOf(request, route.body),
        bodyPieces: () => bodyPieces(request, route.body),
        signal,
        abort: (reason) => gone.abort(reason),
        onceAnswered: (callback) => onceClosed(response, callback),
        addHeader: (name, value) => void response.setHeader(name, value),
      },
      {
        json: (status, body) => sendJson(response, status, body),
        stream: async (stream) => {
          if (isByteStream(stream)) {
            if (request.method === 'HEAD') openByteStream(response, stream).end()
            else await sendByteStream(response, stream, signal)
          } else if (isWebSocketAnswer(stream)) throw new TypeError('this answer needs a WebSocket')
          else if (request.method === 'HEAD') openStream(response).end()
          else await sendEvents(response, stream, { clock: app.clock, signal, requestId: id })
        },
      },
    )
  } catch (error) {
    logError(app.log, error, id)
    sendError(response, toAppError(error), id)
  }
}

export async function servePage(
  app: App,
  operations: Operations,
  page: Page,
  stopping: AbortSignal,
  hasDashboard: boolean,
  { id, request, response, params, peer }: Exchange,
): Promise<void> {
  const perform = performerOf(app, operations, stopping, { id, request, response, peer })
  await answerPage(app, page, request, response, {
    requestId: id,
    peer,
    params: z.record(z.string(), z.string()).parse(params),
    hasDashboard,
    perform,
  })
}

/** The dashboard's page: for a person who is signed in with its first view in it. */
export async function serveDashboardPage(
  app: App,
  operations: Operations,
  dashboard: Dashboard,
  stopping: AbortSignal,
  exchange: Exchange,
): Promise<void> {
  const { request, response } = exchange
  const asked = {
    path: request.url ?? '',
    userAgent: request.headers['user-agent'] ?? '',
    sessionToken: readCookie(request.headers.cookie, 'session', app.config.publicUrl),
  }
  const perform = performerOf(app, operations, stopping, exchange)
  const first = await readFirstPage(app, dashboard.first, asked, perform)
  if (first === null) sendDashboardPage(dashboard, request, response)
  else await sendFirstPage(dashboard, first, request, response)
}

/** Runs routes for a page, as the sender of its request. */
function performerOf(
  app: App,
  operations: Operations,
  stopping: AbortSignal,
  { id, request, response, peer }: Pick<Exchange, 'id' | 'request' | 'response' | 'peer'>,
): PageRequest['perform'] {
  const gone = goneWith(response)
  return async (route, routeParams, body, { team, query = {} } = {}) => {
    const sender = http.senderOf(request, app.config.publicUrl)
    const presented = team === undefined ? sender.presented : { ...sender.presented, team }
    let answered: unknown = null
    await operations.run(
      {
        ...sender,
        presented,
        peer,
        requestId: id,
        route,
        params: routeParams,
        query,
        // The page decides which fields of its form are the operation's input.
        bodyBytes: 0,
        readBody: async () => (body === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(body))),
        signal: AbortSignal.any([gone.signal, stopping]),
        abort: (reason) => gone.abort(reason),
        onceAnswered: (callback) => onceClosed(response, callback),
        addHeader: () => {},
      },
      {
        json: (_status, body) => {
          answered = body
        },
        stream: async () => {
          throw new TypeError('a page cannot show a stream')
        },
      },
    )
    return answered
  }
}
