// /v1/units/{id}/ports/{port}/…: a port of a unit at the API's own address (docs/endpoints.md). Any method and any path, so it
// is no route of the document; each request is one operation, which lets its caller in, and is then passed on as it came.
//
// What a unit answers must not act in our origin. A cookie lets nobody in here, so that no browser comes by itself, by a link or
// for a script; and headers that are for a whole origin do not pass.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import { z } from 'zod'
import type { App } from '../../app.ts'
import { limits } from '../../contract/limits.ts'
import { openPort } from '../../domain/units/ports.ts'
import { noBody } from '../http/body.ts'
import { logError, toAppError } from '../http/errors.ts'
import * as http from '../http/request.ts'
import { sendError } from '../http/response.ts'
import type { OperationRequest, Operations } from '../operation.ts'
import { defineRoute, noQuery, pathId, type Route } from '../route.ts'
import { passRequest } from './pass-on.ts'
import { type PortTarget, readPortTarget } from './target.ts'
import { goneWith, onceClosed } from '../http/gone.ts'

export const portMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const
export const PORT_PATHS = '/v1/units/:id/ports/:port/*'

const params = z.strictObject({
  id: pathId,
  port: z
    .string()
    .regex(/^[1-9]\d{0,4}$/)
    .transform(Number)
    .pipe(z.int().max(limits.portMax)),
})

/** `status`: 101 for a WebSocket, which may be open all day. */
function routeTo(pass: Pass, caller: Peer, status: 101 | 200): Route {
  return defineRoute({
    method: 'GET',
    path: '/v1/units/{id}/ports/{port}/{path}',
    noun: 'unit',
    summary: 'Send a request to a port of a unit',
    action: 'unit.port',
    kind: 'read',
    rate: 'requests',
    params,
    query: noQuery,
    // Read while it is passed on, and the credential is looked at meanwhile.
    body: { ...noBody, kind: 'stream' },
    status,
    response: z.null(),
    events: {},
    errors: [402, 404, 409, 502],
    target: ({ params: { id } }) => id,
    record: ({ params: { port } }) => ({ port, method: caller.method }),
    handle: async (app, { params: { id, port } }, context) => {
      await pass(await openPort(app, context.caller, id, { port, ...caller.seen }))
      return null
    },
  })
}

/** Passes the request on over the connection, and the answer back. */
type Pass = (connection: Duplex) => Promise<void>
type Peer = { method: string; seen: { address: string; isSecure: boolean } }

type Asked = Pick<OperationRequest, 'requestId' | 'peer' | 'signal' | 'abort' | 'onceAnswered'> & {
  request: IncomingMessage
  target: PortTarget
  isUpgrade?: boolean
  /** Where no header could carry it. */
  bearer?: string | null
}

/** Lets a request in, as an operation, and passes it on. Throws what is for its caller. */
export async function runPortCall(
  { config }: App,
  operations: Operations,
  { request, target, isUpgrade = false, bearer = null, ...asked }: Asked,
  pass: Pass,
): Promise<void> {
  const sender = http.senderOf(request, config.publicUrl)
  const seen = {
    address: isIP(asked.peer) > 0 ? asked.peer : '127.0.0.1',
    isSecure: config.publicUrl.startsWith('https:'),
  }
  const caller = { method: request.method ?? '', seen }
  const operation: OperationRequest = {
    ...sender,
    ...asked,
    presented: {
      ...sender.presented,
      authorization: sender.presented.authorization ?? bearer,
      sessionToken: null,
    },
    // The unit's, where it is there at all.
    idempotencyKey: null,
    isUpgrade,
    route: routeTo(pass, caller, isUpgrade ? 101 : 200),
    params: target.params,
    query: {},
    readBody: async () => Buffer.alloc(0),
    bodyBytes: 0,
    addHeader: () => {},
  }
  await operations.run(operation, {
    json: () => {},
    stream: async () => {
      throw new TypeError('a port answers for itself')
    },
  })
}

type Exchange = {
  id: string
  request: IncomingMessage
  response: ServerResponse
  peer: string
  stopping: AbortSignal
}

export type PortsEndpoint = { serve: (exchange: Exchange) => Promise<void> }

export function createPortsEndpoint(app: App, operations: Operations): PortsEndpoint {
  return {
    serve: async ({ id, request, response, peer, stopping }) => {
      const gone = goneWith(response)
      const signal = AbortSignal.any([gone.signal, stopping])
      const target = readPortTarget(request.url ?? '') ?? {
        prefix: '',
        target: '/',
        params: { id: '', port: '' },
      }
      const asked: Asked = {
        request,
        target,
        requestId: id,
        peer,
        signal,
        abort: (reason) => gone.abort(reason),
        onceAnswered: (callback) => onceClosed(response, callback),
      }
      const pass = async (connection: Duplex) =>
        await passRequest({ request, response, connection, target, signal })
      try {
        await runPortCall(app, operations, asked, pass)
      } catch (error) {
        logError(app.log, error, id)
        if (response.headersSent) response.destroy()
        else sendError(response, toAppError(error), id)
      }
    },
  }
}
