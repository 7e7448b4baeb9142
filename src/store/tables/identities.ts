// The columns of `identities` and `provider_sign_ins` (store/identities.ts).

import type { Provider } from '../../contract/me.ts'

export type IdentitiesTable = {
  provider: Provider
  /** The provider's id of the person, which stays when the address or the name changes. */
  subject: string
  user_id: string
  created_at: Date
}

export type ProviderSignInsTable = {
  prefix: string
  hash: Buffer
  provider: Provider
  sealed: Buffer
  expires_at: Date
}
