// Reads and answers the requests to the endpoints that programs call while they connect.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import type { App } from '../../app.ts'
import { OauthError } from '../../domain/oauth/errors.ts'
import type { TokenGate } from '../../domain/oauth/token-gate.ts'
import { readBody } from '../http/body.ts'
import { logError, payloadTooLarge, toAppError } from '../http/errors.ts'
import { send, sendJson } from '../http/response.ts'
import type { Endpoint, EndpointRequest } from './endpoint.ts'
import { metadataEndpoints } from './metadata.ts'
import { registerEndpoint } from './register.ts'
import { tokenEndpoints } from './token.ts'

export const oauthEndpoints: readonly Endpoint[] = [...metadataEndpoints, registerEndpoint, ...tokenEndpoints]

const MAX_BYTES = 16_384

const anySite = { 'access-control-allow-origin': '*' }
const preflight = {
  ...anySite,
  'access-control-allow-headers': 'content-type, mcp-protocol-version',
  'access-control-max-age': '86400',
}

const mediaTypes = { form: 'application/x-www-form-urlencoded', json: 'application/json', nothing: null }

type Exchange = {
  request: IncomingMessage
  response: ServerResponse
  requestId: string
  peer: string
  tokenGate: TokenGate
}

export async function answerOauth(app: App, endpoint: Endpoint, exchange: Exchange): Promise<void> {
  const { request, response, requestId } = exchange
  if (request.method === 'OPTIONS') {
    return send(response, 204, '', { ...preflight, 'access-control-allow-methods': endpoint.method })
  }
  try {
    const { status, json, headers } = await endpoint.answer(app, await readRequest(endpoint, exchange))
    sendJson(response, status, json, { ...anySite, ...headers })
  } catch (error) {
    const { status, json, headers } = refusal(error, requestId)
    if (!(error instanceof OauthError)) logError(app.log, error, requestId)
    sendJson(response, status, json, { ...anySite, ...headers })
  }
}

async function readRequest(
  { accepts }: Endpoint,
  { request, peer, tokenGate }: Exchange,
): Promise<EndpointRequest> {
  const authorization = request.headers.authorization ?? null
  const nothing = { field: () => null, json: undefined, authorization, peer, tokenGate }
  const wanted = mediaTypes[accepts]
  if (wanted === null) return nothing
  const type = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase()
  if (type !== wanted) throw new OauthError('invalid_request', `Send the body as content-type: ${wanted}.`)
  const tooLarge = () => payloadTooLarge(MAX_BYTES)
  const bytes = await readBody(request, { kind: 'bytes', schema: z.unknown(), maxBytes: MAX_BYTES, tooLarge })
  const text = bytes.toString('utf8')
  if (accepts === 'json') return { ...nothing, json: parsed(text) }
  const form = new URLSearchParams(text)
  return { ...nothing, field: (name) => fieldOf(form, name) }
}

function fieldOf(form: URLSearchParams, name: string): string | null {
  const [first, ...more] = form.getAll(name)
  if (more.length > 0) throw new OauthError('invalid_request', `${name} is there more than once.`)
  return first === undefined || first === '' ? null : first
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function refusal(error: unknown, requestId: string) {
  if (error instanceof OauthError) {
    const status = error.code === 'invalid_client' ? 401 : 400
    return { status, json: body(error.code, error.message), headers: {} }
  }
  const { status, message, retryAfterS } = toAppError(error)
  const codes: Record<number, string> = {
    429: 'temporarily_unavailable',
    500: 'server_error',
    503: 'temporarily_unavailable',
  }
  return {
    status,
    json: body(codes[status] ?? 'invalid_request', `${message} (${requestId})`),
    headers: retryAfterS === null ? {} : { 'retry-after': String(retryAfterS) },
  }
}

/** Removes characters that RFC 6749 5.2 does not allow here. */
function body(error: string, message: string) {
  return { error, error_description: message.replace(/["\\]/g, "'").replace(/[^\x20-\x7e]/g, ' ') }
}
