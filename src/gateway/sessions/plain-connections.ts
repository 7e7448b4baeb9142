// Connections to units for plain requests (plain-request.ts). Like those of Node's agent, each belongs to one run of one
// unit and one of its ports. A connection has one set of listeners for its whole life, and no timer.

import { connect, type Socket } from 'node:net'

/** What uses a connection for one request. */
export type ConnectionUser = {
  onConnected(): void
  onData(chunk: Buffer): void
  /** Null: the unit ended the connection. */
  onClosed(error: NodeJS.ErrnoException | null): void
}

export type PlainConnection = {
  readonly socket: Socket
  readonly port: number
  /** Whether it has already served a request. */
  isReused: boolean
  user: ConnectionUser | null
  /** Until when it may wait for another request. */
  keptUntilMs: number
}

export type PlainConnections = {
  take(port: number, user: ConnectionUser): PlainConnection
  /** Keeps it so long for another request. */
  release(connection: PlainConnection, keptMs: number): void
  /** Closes those that have waited for too long. Returns whether any is left. */
  sweep(): boolean
  destroy(): void
}

export type PlainConnectionsOptions = {
  host: string
  maxIdle: number
  keepAliveProbeMs: number
  /** A clock that may be half a second slow. */
  nowMs: () => number
}

/** To one run of a unit. */
export function createPlainConnections(options: PlainConnectionsOptions): PlainConnections {
  const { host, maxIdle, keepAliveProbeMs, nowMs } = options
  const all = new Set<PlainConnection>()
  /** By port. The last one of each list was used last. */
  const idle = new Map<number, PlainConnection[]>()

  function open(port: number, user: ConnectionUser): PlainConnection {
    const probes = { keepAlive: true, keepAliveInitialDelay: keepAliveProbeMs }
    const socket = connect({ host, port, noDelay: true, ...probes })
    const connection: PlainConnection = { socket, port, isReused: false, user, keptUntilMs: 0 }
    all.add(connection)
    const leave = (error: NodeJS.ErrnoException | null) => {
      all.delete(connection)
      forgetIdle(connection)
      socket.destroy()
      const { user: current } = connection
      connection.user = null
      current?.onClosed(error)
    }
    socket.on('connect', () => connection.user?.onConnected())
    socket.on('data', (chunk: Buffer) => {
      // Bytes that no request asked for cannot be told from the next response.
      if (connection.user) connection.user.onData(chunk)
      else leave(null)
    })
    socket.on('end', () => leave(null))
    socket.on('error', leave)
    socket.on('close', () => leave(Object.assign(new Error('closed'), { code: 'ECONNRESET' })))
    return connection
  }

  function forgetIdle(connection: PlainConnection): void {
    const waiting = idle.get(connection.port)
    const at = waiting?.indexOf(connection) ?? -1
    if (at >= 0) waiting?.splice(at, 1)
  }

  return {
    take(port, user) {
      const waiting = idle.get(port)
      for (let kept = waiting?.pop(); kept; kept = waiting?.pop()) {
        if (kept.socket.destroyed) continue
        kept.user = user
        kept.isReused = true
        return kept
      }
      return open(port, user)
    },
    release(connection, keptMs) {
      const { socket, port } = connection
      connection.user = null
      const waiting = idle.get(port) ?? []
      if (keptMs <= 0 || waiting.length >= maxIdle || socket.destroyed) {
        socket.destroy()
        return
      }
      connection.keptUntilMs = nowMs() + keptMs
      waiting.push(connection)
      idle.set(port, waiting)
    },
    sweep() {
      for (const waiting of idle.values())
        for (const { socket, keptUntilMs } of waiting) if (keptUntilMs <= nowMs()) socket.destroy()
      return all.size > 0
    },
    destroy() {
      for (const { socket } of all) socket.destroy()
    },
  }
}
