// The columns of `secrets` (store/secrets.ts) and `team_secrets` (store/team-secrets.ts).

export type SecretsTable = {
  /** A unit, for a value from its caller; a stack, for a generated value. */
  owner_id: string
  name: string
  sealed: Buffer
  /** Of a brokered secret; null for one whose value is in the unit's environment. */
  hosts: string[] | null
  placeholder: string | null
  /** For which requests to the hosts; null for all (lib/egress/secret-requests.ts). */
  methods: string[] | null
  paths: string[] | null
}

export type TeamSecretsTable = {
  team_id: string
  name: string
  hosts: string[]
  placeholder: string
  methods: string[] | null
  paths: string[] | null
  sealed: Buffer
  created_at: Date
  updated_at: Date
}
