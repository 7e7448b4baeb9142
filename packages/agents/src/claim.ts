// What a worker of a vendor's own in a unit is begun with.

import type { Contract } from '../../sdk/src/index.ts'

export type Claim = {
  session: string
  /** The worker, as the unit runs it. */
  cmd: readonly string[]
  env: Record<string, string>
  /** A credential for this claim alone; null if there is none. */
  token: string | null
  /** The unit has a placeholder in this variable, and the token goes to these hosts; null: a file in its memory has the token. */
  brokered: Brokered | null
}

/** For which requests the token is, as the API has it. */
export type Brokered = {
  variable: string
  hosts: string[]
  methods?: Contract.UnitSecretPut['methods'] & {}
  paths?: string[]
  placeholder?: string
}
