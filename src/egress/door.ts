// The types that the listeners on ports 80 and 443 share.

import type { Socket } from 'node:net'
import type { EgressLink } from '../lib/egress/link-client.ts'
import type { Telling } from '../lib/egress/telling.ts'
import type { ResolveName } from './names.ts'
import type { OpenConnections } from './open-connections.ts'

export type Door = {
  link: EgressLink
  resolve: ResolveName
  open: OpenConnections
  note: Telling['note']
  /** Returns what ends the share that a connection has; null, with the connection closed, where there is none. */
  enter(socket: Socket): (() => void) | null
}
