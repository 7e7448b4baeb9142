// The columns of `oauth_requests` and `oauth_codes` (store/oauth-requests.ts).

export type OauthRequestsTable = {
  prefix: string
  hash: Buffer
  client_id: string
  redirect_uri: string
  state: string | null
  code_challenge: string
  session_id: string | null
  expires_at: Date
}

export type OauthCodesTable = {
  prefix: string
  hash: Buffer
  client_id: string
  redirect_uri: string
  code_challenge: string
  credential_id: string
  expires_at: Date
  used_at: Date | null
  family_id: string | null
}
