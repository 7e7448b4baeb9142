// The types that the listeners on ports 80 and 443 share.

import type { Socket } from 'node:net'
import type { EgressLink } from '../lib/egress/link-client.ts'
import type { Telling } from '../lib/egress/telling.ts'
import type { ResolveName } from './names.ts'
import type { OpenConnections } from './open-connections.ts'
import { BYTES_A_UNIT, type Client, type Turn } from './shares.ts'

export type Door = {
  link: EgressLink
  resolve: ResolveName
  open: OpenConnections
  note: Telling['note']
  /** Returns what ends the share that a connection has; null, with the connection closed, where there is none. */
  enter(socket: Socket): (() => void) | null
  /** When work for a machine may begin (shares.ts). Null: at once. */
  turn(machine: string, units: number, client?: Client): Promise<void> | null
}

/** For the bytes of a machine's connections. */
export function turnsOf(door: Pick<Door, 'turn'>, machine: string): Turn {
  return (bytes) => door.turn(machine, bytes / BYTES_A_UNIT)
}
