// The columns of `idempotency_keys` (store/idempotency.ts).

export type IdempotencyKeysTable = {
  team_id: string
  /** The route's method and path. */
  route: string
  key: string
  /** Unique for each claim of the key. */
  claim: string
  /** The fingerprint of the request. */
  request: Buffer
  /** What a later answer needs; null only until the transaction that claims the key ends. */
  kept: Buffer | null
  answer: Buffer | null
  claimed_at: Date
}
