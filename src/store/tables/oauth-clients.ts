// The columns of `oauth_clients` (store/oauth-clients.ts).

export type OauthClientsTable = {
  id: string
  kind: 'registered' | 'document'
  name: string | null
  uri: string | null
  icon: string | null
  redirect_uris: string[]
  created_at: Date
  used_at: Date
  fresh_until: Date | null
}
