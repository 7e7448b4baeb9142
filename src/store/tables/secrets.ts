// The columns of `secrets` (store/secrets.ts).

export type SecretsTable = {
  /** A unit, for a value from its caller; a stack, for a generated value. */
  owner_id: string
  name: string
  sealed: Buffer
}
