// The state of one connection into whose requests secrets are put.

import type { SeenLine } from '../../lib/egress/seen.ts'
import type { Prepared } from './prepared.ts'

/** A connection of a machine to the host of a secret. */
export type Place = {
  machine: string
  host: string
  /** As the rules are now. */
  secrets: () => Prepared
  /** The placeholders whose values have been sent on it. */
  used: Set<string>
  /** The line of the log in which the newest request is counted. */
  counted: SeenLine | null
}
