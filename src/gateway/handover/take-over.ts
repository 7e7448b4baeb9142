// Takes over visits that came to the gateways of other hosts. Each goes the way of every other visit from here on, with the
// visitor's address, and is served by this gateway or not at all: it is never handed over again.

import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { createConcurrencyLimit } from '../../lib/concurrency/concurrency-limit.ts'
import { logLimitReached } from '../../lib/limit-reached.ts'
import type { Clock } from '../../lib/clock.ts'
import { type FleetListener, type FleetListenerOptions, listenForFleet } from '../../lib/ipc/fleet-tls.ts'
import type { Log } from '../../lib/log.ts'
import type { Doors } from '../server-link/doors.ts'
import {
  answers,
  HANDOVER_PROTOCOL,
  type HandedVisit,
  type Handover,
  handoverSchema,
  MAX_LINE_BYTES,
} from './protocol.ts'

const LINE_FEED = 0x0a
const mayCall = { server: false, engine: false, gateway: true }

export type HandoverListener = FleetListener & {
  /** Ends the connections of hosts that are none any more. */
  look(): void
}

type Inside = {
  doors: Pick<Doors, 'knows'>
  /** Serves a visit. The connection is its visitor's from here on. */
  take: (socket: TLSSocket, visit: HandedVisit) => void
  /** Answers whether a session here was meant, once its server was told. */
  cancel: (request: Buffer, socket: TLSSocket) => Promise<boolean>
  /** Of one host, with those that are open in advance. */
  maxConnections: number
  clock: Clock
  log: Log
}

/** Serves until closed. */
export async function listenForHandovers(
  options: FleetListenerOptions,
  { doors, take, cancel, maxConnections, clock, log }: Inside,
): Promise<HandoverListener> {
  const share = createConcurrencyLimit(Infinity, maxConnections)
  const members = new Map<TLSSocket, { host: string; issuedAt: Date }>()
  const listener = await listenForFleet(
    { ...options, maxConnections: 4 * maxConnections },
    {
      mayCall,
      protocols: [HANDOVER_PROTOCOL],
      onMember: (socket, { host }) => {
        const issuedAt = socket.getPeerX509Certificate()?.validFromDate ?? new Date(0)
        const refuse = (why: string) => {
          log.warn({ host, peer: socket.remoteAddress, why }, 'gateway of another host refused')
          socket.destroy()
        }
        if (!doors.knows(host, issuedAt)) return refuse('its host is not another one of this service')
        if (!share.tryAcquire(host)) {
          logLimitReached({ log, clock }, { bound: "connections of another host's gateway", by: host })
          return void socket.destroy()
        }
        members.set(socket, { host, issuedAt })
        socket.once('close', () => {
          members.delete(socket)
          share.release(host)
        })
        serve(socket).catch((error: unknown) => {
          log.warn({ host, error: String(error) }, 'gateway of another host disconnected')
          socket.destroy()
        })
      },
      log,
    },
  )

  async function serve(socket: TLSSocket): Promise<void> {
    for (let line = await readLine(socket); line !== null; line = await readLine(socket)) {
      if (line.kind !== 'cancel') {
        // A session of HTTP/2 that takes a socket over in the middle of a write ends the whole process by an assertion.
        const taken = () => void (socket.destroyed || take(socket, line))
        return void socket.write(Buffer.of(answers.yes), taken)
      }
      const isDone = await cancel(Buffer.from(line.request, 'base64'), socket)
      socket.write(Buffer.of(isDone ? answers.yes : answers.no))
    }
  }

  return {
    ...listener,
    look() {
      for (const [socket, { host, issuedAt }] of members) if (!doors.knows(host, issuedAt)) socket.destroy()
    },
    close: async (end) =>
      await listener.close(() => {
        for (const socket of members.keys()) socket.destroy()
        end()
      }),
  }
}

/** Returns null if the connection ends first. Rejects for anything but a line of the protocol. */
export function readLine(socket: Socket): Promise<Handover | null> {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0)
    const settle = (act: () => void) => {
      socket.off('readable', look)
      socket.off('close', end)
      act()
    }
    const end = () => settle(() => resolve(null))
    const look = () => {
      for (let chunk = read(socket); chunk !== null; chunk = read(socket)) {
        bytes = Buffer.concat([bytes, chunk])
        const at = bytes.indexOf(LINE_FEED)
        if (at < 0 && bytes.length <= MAX_LINE_BYTES) continue
        return settle(() => {
          const rest = bytes.subarray(at + 1)
          if (rest.length > 0) socket.unshift(rest)
          const line = at < 0 ? null : parse(bytes.toString('utf8', 0, at))
          if (line) resolve(line)
          else reject(new Error('it said something else than it should'))
        })
      }
    }
    socket.on('readable', look)
    socket.once('close', end)
    look()
  })
}

const read = (socket: Socket) => socket.read() as Buffer | null

function parse(text: string): Handover | null {
  try {
    return handoverSchema.safeParse(JSON.parse(text)).data ?? null
  } catch {
    return null
  }
}
