// Port 443 of restricted machines: the name is read from the ClientHello, and the bytes pass unread, but for the hosts of
// secrets (broker/).

import { createServer, type Server, type Socket } from 'node:net'
import { HELLO_MAX_BYTES, readHello } from './client-hello.ts'
import type { Broker } from './broker/broker.ts'
import { decide, isAllowed, secretsFor } from './decide.ts'
import { dialName } from './dial.ts'
import { type Door, turnsOf } from './door.ts'
import { noteAllowed, noteRefused } from './egress-log.ts'
import { createReads } from './reads.ts'
import { work } from './shares.ts'
import { splice } from './splice.ts'

const PORT = 443
const HELLO_MS = 10_000

/** Fatal alerts (RFC 8446 6): `access_denied`, and `internal_error` for a host that does not answer. */
const alerts = {
  denied: Buffer.from([21, 3, 3, 0, 2, 2, 49]),
  unreachable: Buffer.from([21, 3, 3, 0, 2, 2, 80]),
} as const

export function createTlsDoor(door: Door, broker: Broker): Server {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    const release = door.enter(socket)
    if (release === null) return
    socket.once('close', release)
    serve(door, broker, socket).catch(() => socket.destroy())
  })
  return server
}

async function serve(door: Door, broker: Broker, machine: Socket): Promise<void> {
  const address = machine.remoteAddress ?? ''
  const first = await readFirst(machine)
  if (first === null) return void machine.destroy()
  await door.turn(address, work.name, machine)
  const decision = await decide(door, address, first.name, PORT)
  const noting = { door, machine: address, protocol: 'tls', port: PORT } as const
  if (decision.kind === 'refused') noteRefused(noting, decision)
  if (machine.destroyed) return
  if (decision.kind === 'refused') return end(machine, alerts.denied)

  const team = door.link.rulesOf(address)?.team ?? null
  if (team !== null && secretsFor(door.link, address, decision.name).length > 0) {
    machine.unshift(first.bytes)
    return await broker.serve(machine, { team, host: decision.name })
  }
  const gone = new AbortController()
  machine.once('close', () => gone.abort())
  const turn = turnsOf(door, address)
  const reads = createReads(machine, turn)
  const host = await dialName(decision.addresses, PORT, gone.signal, reads)
  noteAllowed(noting, decision, host)
  if (host === null) return end(machine, alerts.unreachable)
  if (machine.destroyed || !isAllowed(door.link, address, decision.name, PORT)) {
    host.destroy()
    return end(machine, alerts.denied)
  }
  const cut = () => {
    machine.resetAndDestroy()
    host.resetAndDestroy()
  }
  const forget = door.open.add(address, { name: decision.name, port: PORT, address: host.remoteAddress, cut })
  machine.once('close', forget)
  host.write(first.bytes)
  splice(machine, host, { turn, reads })
}

/** Returns the first bytes and the name in them, null for none; or null for a client that says nothing in time. */
async function readFirst(socket: Socket): Promise<{ bytes: Buffer; name: string | null } | null> {
  const { promise, resolve } = Promise.withResolvers<{ bytes: Buffer; name: string | null } | null>()
  let bytes: Buffer = Buffer.alloc(0)
  const timer = setTimeout(() => resolve(null), HELLO_MS)
  const take = (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    const hello = readHello(bytes)
    if (hello.kind === 'more' && bytes.length < 2 * HELLO_MAX_BYTES) return
    socket.pause()
    resolve({ bytes, name: hello.kind === 'hello' ? hello.name : null })
  }
  const stop = () => resolve(null)
  socket.on('data', take).once('close', stop).once('end', stop)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    socket.off('data', take).off('close', stop).off('end', stop)
  }
}

function end(socket: Socket, last: Buffer): void {
  socket.end(last)
  socket.resume()
  setTimeout(() => socket.destroy(), 1000).unref()
}
