// PostgreSQL cancel requests without TLS. psql and most libraries send them so even if the session is encrypted, on a
// connection that names no endpoint: only the key identifies the session. So the keys of open sessions are stored,
// and a request goes to the unit whose session has its key, or nowhere. As with PostgreSQL itself, the holder of a
// key can cancel what that session does, and nothing else.

import { connect, type Socket } from 'node:net'
import type { Handovers } from '../../handover/hand-over.ts'
import { findBackendKey, keyOfCancel, readStartup } from './messages.ts'
import type { Backend, CancelKeys } from '../../sessions/cancel-keys.ts'

/** Stores the key that the unit sends its visitor, for as long as their session lasts. */
export function recordCancelKey(
  keys: CancelKeys,
  { unit, first, run }: { unit: Socket; first: Buffer; run: Backend },
): void {
  let said = Buffer.alloc(0)
  const look = (chunk: Buffer) => {
    said = Buffer.concat([said, chunk])
    const key = findBackendKey(said)
    if (key === 'more') return
    unit.off('data', look)
    if (key !== null) unit.once('close', keys.add(key, run))
    said = Buffer.alloc(0)
  }
  unit.on('data', look)
  look(first)
}

type Needs = { cancelKeys: CancelKeys; handover?: Pick<Handovers, 'cancel'> }

/**
 * Passes the request on to its backend, or to the gateways of other hosts if no session here has its key, and closes once that
 * closes. The caller sets the timeout.
 */
export async function handleCancelRequest({ cancelKeys, handover }: Needs, socket: Socket): Promise<void> {
  const request = await readRequest(socket)
  const backend = request === null ? null : cancelKeys.find(keyOfCancel(request))
  if (request !== null && backend !== null) await deliver(request, backend, socket)
  else if (request !== null) await handover?.cancel(request)
  socket.destroySoon()
}

/** Of a request that came to another host: whether a session here was meant. `socket`: its end ends the attempt. */
export async function takeCancel(keys: CancelKeys, request: Buffer, socket: Socket): Promise<boolean> {
  const backend = readStartup(request) === 'only' ? keys.find(keyOfCancel(request)) : null
  if (backend === null) return false
  await deliver(request, backend, socket)
  return true
}

/** Returns null if it is not a cancel request, or the client has disconnected. */
function readRequest(socket: Socket): Promise<Buffer | null> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0)
    const settle = (request: Buffer | null) => {
      socket.off('readable', look)
      resolve(request)
    }
    const look = () => {
      for (let chunk = read(socket); chunk !== null; chunk = read(socket))
        bytes = Buffer.concat([bytes, chunk])
      const found = readStartup(bytes)
      if (found !== 'more') settle(found === 'only' ? bytes : null)
    }
    socket.on('readable', look)
    socket.once('end', () => settle(null))
    socket.once('close', () => settle(null))
    look()
  })
}

const read = (socket: Socket) => socket.read() as Buffer | null

function deliver(request: Buffer, { address, port }: Backend, socket: Socket): Promise<void> {
  // Node would take an absent address for its own host (reliability I27).
  if (address === null) return Promise.resolve()
  return new Promise((resolve) => {
    const unit = connect({ host: address, port, noDelay: true })
    unit.on('error', () => unit.destroy())
    unit.once('close', () => resolve())
    // The server sends nothing, and closes.
    unit.resume()
    unit.end(request)
    socket.once('close', () => unit.destroy())
    socket.resume()
  })
}
