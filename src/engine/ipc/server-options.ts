// The options of the engine's sockets and its TLS listener.

import type { FleetListenerOptions } from '../../lib/ipc/fleet-tls.ts'
import type { Log } from '../../lib/log.ts'
import type { Engine } from '../engine.ts'
import type { Epochs } from '../epochs.ts'

export type EngineServerOptions = {
  engine: Engine
  /** Refuses servers of earlier epochs. */
  epochs: Epochs
  socketPath: string
  /** The group that may connect: the server's. */
  socketGid: number
  /** For a server on another machine. */
  tls?: FleetListenerOptions | null
  log: Log
}
