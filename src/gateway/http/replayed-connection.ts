// A connection to a unit whose request was sent already, and whose first bytes were read: for Node's HTTP client, which
// reads the response from its beginning.

import { Duplex } from 'node:stream'
import type { PlainConnection } from '../sessions/plain-connections.ts'

/** Drops what is written to it. Destroying it closes the connection. */
export function replayConnection(connection: PlainConnection, bytes: Buffer): Duplex {
  const { socket } = connection
  const replayed = new Duplex({
    read: () => void socket.resume(),
    write: (_chunk, _encoding, done) => done(),
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  connection.user = {
    onConnected: () => {},
    onData(chunk) {
      if (!replayed.push(chunk)) socket.pause()
    },
    onClosed(error) {
      if (error === null) replayed.push(null)
      else replayed.destroy(error)
    },
  }
  replayed.push(bytes)
  return replayed
}
