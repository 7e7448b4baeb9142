// The columns of `sessions` and `sign_in_links` (store/sessions.ts).

export type SessionsTable = {
  id: string
  user_id: string
  prefix: string
  hash: Buffer
  current_team_id: string | null
  created_at: Date
  expires_at: Date
  revoked_at: Date | null
}

export type SignInLinksTable = {
  prefix: string
  hash: Buffer
  email: string
  created_at: Date
  expires_at: Date
  used_at: Date | null
}
