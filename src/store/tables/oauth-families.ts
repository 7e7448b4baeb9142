// The columns of `oauth_families` and `oauth_tokens` (store/oauth-families.ts).

export type OauthFamiliesTable = {
  id: string
  credential_id: string
  client_id: string
  sealed_key: Buffer
  /** The generation of the current pair. */
  generation: number
  created_at: Date
  used_at: Date
  refresh_until: Date
  revoked_at: Date | null
}

export type OauthTokensTable = {
  prefix: string
  hash: Buffer
  family_id: string
  kind: 'access' | 'refresh'
  generation: number
  expires_at: Date | null
  /** For an access token: its first use. */
  used_at: Date | null
  /** For a refresh token: when it was exchanged. */
  retired_at: Date | null
}
