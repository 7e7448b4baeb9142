// What both of the engine's sockets are served with.

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
  log: Log
}
