// The errors for programs that request tokens or register, in the format of OAuth instead of the API's (RFC 6749 5.2,
// RFC 7591 3.2.2).

export type OauthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'invalid_target'
  | 'invalid_redirect_uri'
  | 'invalid_client_metadata'

export class OauthError extends Error {
  readonly code: OauthErrorCode

  constructor(code: OauthErrorCode, message: string) {
    super(message)
    this.name = 'OauthError'
    this.code = code
  }
}
