// The OAuth endpoints that programs call while they connect. They are not operations: there is no authenticated
// caller yet, and the OAuth standards define their format. Pages of any site may read them, since programs also run
// in browsers; they ignore cookies.

import type { App } from '../../app.ts'
import type { TokenGate } from '../../domain/oauth/token-gate.ts'

export type EndpointRequest = {
  /** Returns a field of the form; null if it is absent or empty. Throws OauthError if it is there twice. */
  field: (name: string) => string | null
  /** The body as JSON; undefined if it is not JSON. */
  json: unknown
  authorization: string | null
  /** The address of the client. */
  peer: string
  tokenGate: TokenGate
}

export type EndpointAnswer = { status: number; json: unknown; headers?: Record<string, string> }

export type Endpoint = {
  method: 'GET' | 'POST'
  path: string
  accepts: 'nothing' | 'form' | 'json'
  answer: (app: App, request: EndpointRequest) => Promise<EndpointAnswer>
}
