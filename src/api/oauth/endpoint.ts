// What programs ask while they are being connected. No operations: nobody is a caller yet, and the standards of OAuth say
// how these look. Pages of any site may read them, as programs also run in browsers: nothing here goes by a cookie.

import type { App } from '../../app.ts'
import type { TokenGate } from '../../domain/oauth/token-gate.ts'

export type EndpointRequest = {
  /** Of a form; throws OauthError where a field is there twice. Null: it is not there, or empty. */
  field: (name: string) => string | null
  /** A body in JSON; undefined where it is none. */
  json: unknown
  authorization: string | null
  /** Address of the other end of the connection. */
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
