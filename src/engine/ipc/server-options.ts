// The options of the engine's sockets and its TLS listener.

import type { Log } from '../../lib/log.ts'
import type { Engine } from '../engine.ts'
import type { Epochs } from '../epochs.ts'
import type { TlsListenerOptions } from './tls-listener.ts'

export type EngineServerOptions = {
  engine: Engine
  /** Refuses servers of earlier epochs. */
  epochs: Epochs
  socketPath: string
  /** The group that may connect: the server's. */
  socketGid: number
  /** For a server on another machine. */
  tls?: TlsListenerOptions | null
  log: Log
}
