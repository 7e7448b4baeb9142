// /mcp: authenticates the caller by API key or access token, never by a cookie. answer.ts then answers the messages.

import type { IncomingMessage } from 'node:http'
import type { App } from '../../app.ts'
import { forbidden } from '../../contract/errors.ts'
import { logError, toAppError } from '../http/errors.ts'
import { isFromOwnPages, presentedBy } from '../http/request.ts'
import { sendError } from '../http/response.ts'
import type { Operations } from '../operation.ts'
import { answerRequest } from './answer.ts'
import { sendAnswer } from './bridge.ts'
import { createCancellations } from './cancellations.ts'
import { clientInfoOfSession } from './client-info.ts'
import type { McpExchange } from './exchange.ts'
import type { Protocol } from './transport.ts'
import { goneWith } from '../http/gone.ts'

/** GET tells a client where to sign in. DELETE ends a session, of which the service keeps none. */
export const mcpMethods = ['POST', 'GET', 'DELETE'] as const
export const mcpPaths = ['/mcp', '/mcp/'] as const

export type McpEndpoint = { serve(exchange: McpExchange): Promise<void> }

/** `open` loads what answers the messages, with the first of them. */
export function createMcpEndpoint(
  app: App,
  operations: Operations,
  open: () => Promise<Protocol>,
): McpEndpoint {
  const { publicUrl } = app.config
  let opened: Promise<Protocol> | null = null
  const world = {
    app,
    operations,
    protocol: () => (opened ??= open()),
    cancellations: createCancellations(),
  }
  return {
    serve: async (exchange) => {
      const { id, request, response, peer } = exchange
      try {
        if (!isAllowed(request, publicUrl)) {
          throw forbidden('This endpoint is for programs, not for pages of other sites.')
        }
        const presented = { ...presentedBy(request.headers, publicUrl), sessionToken: null }
        const caller = await operations.authenticate({ presented, peer })
        const sessionId = sessionOf(request)
        const info = clientInfoOfSession(sessionId)
        const call = { ...exchange, presented, caller, sessionId, info, gone: goneWith(response).signal }
        await sendAnswer(response, await answerRequest(world, call))
      } catch (error) {
        logError(app.log, error, id)
        const known = toAppError(error)
        sendError(response, known, id, known.status === 401 ? challenge(publicUrl, request) : {})
      }
    },
  }
}

/** Of requests from browsers, allows only those of our own pages; programs send no origin. */
function isAllowed(request: IncomingMessage, publicUrl: string): boolean {
  return request.headers.origin === undefined || isFromOwnPages(request, publicUrl)
}

/** The header that tells a client how to sign in (RFC 9728). */
function challenge(publicUrl: string, { headers }: IncomingMessage): Record<string, string> {
  const parts = [`resource_metadata="${publicUrl}/.well-known/oauth-protected-resource/mcp"`, 'scope="units"']
  if (headers.authorization !== undefined) parts.unshift('error="invalid_token"')
  return { 'www-authenticate': `Bearer ${parts.join(', ')}` }
}

function sessionOf({ headers }: IncomingMessage): string | null {
  const session = headers['mcp-session-id']
  return typeof session === 'string' && /^[\x21-\x7e]{1,500}$/.test(session) ? session : null
}
