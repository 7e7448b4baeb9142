// One connection of a machine to the host of a secret, and the one connection to that host which serves it: made at once,
// and again if the host has closed it between two requests.

import { Agent } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { SecureContext, TLSSocket } from 'node:tls'
import type { Door } from '../door.ts'
import { noteBrokeredEnd } from '../egress-log.ts'
import type { Refused } from '../refused.ts'
import type { Place } from './place.ts'
import type { Prepared } from './prepared.ts'
import { connectUpstream, refusalOf } from './upstream.ts'

export type Session = Place & {
  agent: Agent
  /** A request begins; returns what to call at its end. */
  begin(): () => void
  refusalFor(error: Error): Refused
}

type Options = {
  machine: string
  host: string
  secrets: () => Prepared
  trusted: () => Promise<SecureContext>
}

type Settled = { value?: TLSSocket; reason?: Error }

const PORT = 443

export function openSession(
  door: Door,
  inside: TLSSocket,
  { machine, host, secrets, trusted }: Options,
): Session {
  const gone = new AbortController()
  const used = new Set<string>()
  let requests = 0
  let upstream: TLSSocket | null = null

  const open = async (): Promise<TLSSocket> => {
    const socket = await connectUpstream(door, { machine, host, trusted, protocol: 'http/1.1' }, gone.signal)
    upstream = socket
    socket.on('error', () => {})
    socket.once('close', () => {
      noteBrokeredEnd(door, session, socket)
      // As the host itself would: a client with more to ask connects again.
      if (requests === 0 && upstream === socket) inside.end()
    })
    return socket
  }
  let first: Promise<TLSSocket> | null = open()
  first.catch(() => {})

  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const connection = async (done: (error: Error | null, socket?: Duplex) => void) => {
    const connecting = first ?? open()
    first = null
    const [{ value, reason }] = (await Promise.allSettled([connecting])) as [Settled]
    done(reason ?? null, value)
  }
  const createConnection = (_options: object, done: (error: Error | null, socket?: Duplex) => void) =>
    void connection(done)
  Object.assign(agent, { createConnection })

  const cut = () => {
    inside.destroy()
    upstream?.destroy()
  }
  const forget = door.open.add(machine, { name: host, port: PORT, cut, used })
  inside.once('close', () => {
    gone.abort()
    forget()
    agent.destroy()
    first?.then(destroy, () => {})
  })

  const session: Session = {
    machine,
    host,
    secrets,
    agent,
    used,
    counted: null,
    begin() {
      requests += 1
      return () => {
        requests -= 1
        if (requests === 0 && upstream?.destroyed) inside.end()
      }
    },
    refusalFor: (error) => refusalOf(error, host),
  }
  return session
}

function destroy(socket: Socket): void {
  socket.destroy()
}
