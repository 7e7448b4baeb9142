// The gateway's client for the server (protocol.ts). The server may be unavailable at any time: every failure only
// means that it could not be asked.

import { connect as connectSocket, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { gatewayFactsOf, type GatewaySettings } from '../../contract/gateway-facts.ts'
import type { Clock } from '../../lib/clock.ts'
import type { FleetIdentity } from '../../lib/fleet-identity.ts'
import { anyServer, fleetTls, PROBE_AFTER_MS } from '../../lib/ipc/fleet-tls.ts'
import { openJsonLinesClient } from '../../lib/ipc/json-lines-rpc.ts'
import { createReconnecting } from '../../lib/ipc/reconnecting.ts'
import type { Address } from '../../lib/setting-values.ts'
import {
  type GatewayAnswer,
  type GatewayOperation,
  gatewayOperations,
  type GatewayRequest,
  LINK_PROTOCOL,
  MAX_BYTES,
  messageSchema,
  SILENT_FOR_MS,
} from './protocol.ts'

export type ServerClient = {
  /** Rejects if the server does not answer. */
  ask<K extends GatewayOperation>(operation: K, request: GatewayRequest[K]): Promise<GatewayAnswer[K]>
  /** Reports units that stop running, across restarts of the server, until the signal aborts. */
  follow(watcher: RunEndWatcher, signal: AbortSignal): Promise<void>
}

export type ServerAddress =
  | { socketPath: string }
  /** On another machine. The gateway says there what its settings are. */
  | (Address & { identity: () => FleetIdentity; settings: GatewaySettings })

export type RunEndWatcher = {
  /** From now on every unit that stops running is reported. */
  onConnected: () => void
  onRunEnded: (unitId: string) => void
  /** From now on nothing is reported. */
  onDisconnected: () => void
}

/** The delay between two connection attempts: as long as a server takes to restart. */
const AGAIN_MS = 250

export function connectToServer({ address, clock }: { address: ServerAddress; clock: Clock }): ServerClient {
  const connected = createReconnecting(() => openConnection(address))

  return {
    async ask(operation, request) {
      const { answer, deadlineMs } = gatewayOperations[operation]
      const said = await connected().ask(operation, request, deadlineMs)
      return answer.parse(said) as GatewayAnswer[typeof operation]
    },
    async follow(watcher, signal) {
      while (!signal.aborted) {
        await connected().follow(watcher, signal)
        await clock.sleep(AGAIN_MS, signal).catch(() => {})
      }
    },
  }
}

type Asked = { operation: GatewayOperation; request: unknown }

type Connection = {
  isOver(): boolean
  ask(operation: GatewayOperation, request: unknown, deadlineMs: number): Promise<unknown>
  /** Resolves when the connection ends; the signal ends it. */
  follow(watcher: RunEndWatcher, signal: AbortSignal): Promise<void>
}

function openConnection(address: ServerAddress): Connection {
  const socket = 'socketPath' in address ? connectSocket(address.socketPath) : connectByTls(address)
  const over = Promise.withResolvers<void>()
  let watcher: RunEndWatcher | null = null
  let isThere = false

  const silence = setTimeout(() => socket.destroy(new Error('the server is silent')), SILENT_FOR_MS)
  const hear = (line: string) => {
    silence.refresh()
    if (!isThere) greet()
    isThere = true
    if (line === '') return null
    const saying = messageSchema.parse(JSON.parse(line))
    if (!('event' in saying)) return saying
    watcher?.onRunEnded(saying.of)
    return null
  }
  const greet = () => {
    watcher?.onConnected()
    if ('socketPath' in address) return
    const { deadlineMs } = gatewayOperations.hello
    calls.call({ operation: 'hello', request: gatewayFactsOf(address.settings) }, deadlineMs).then(
      // Said again on the next connection.
      (reply) => 'error' in reply && socket.destroy(),
      () => socket.destroy(),
    )
  }
  const calls = openJsonLinesClient(socket, {
    mostBytes: MAX_BYTES,
    hear,
    late: ({ operation }: Asked) => new Error(`no answer in time to "${operation}"`),
    over: (cause) => cause ?? new Error('the connection to the server ended'),
  })
  socket.once('close', () => {
    clearTimeout(silence)
    if (isThere) watcher?.onDisconnected()
    over.resolve()
  })

  return {
    isOver: calls.isOver,
    async ask(operation, request, deadlineMs) {
      const reply = await calls.call({ operation, request }, deadlineMs)
      if ('error' in reply) throw new Error(reply.error.publicMessage)
      return reply.answer
    },
    async follow(following, signal) {
      watcher = following
      if (isThere) watcher.onConnected()
      const end = () => void socket.destroy()
      signal.addEventListener('abort', end)
      await over.promise
      signal.removeEventListener('abort', end)
    },
  }
}

function connectByTls({ host, port, identity }: Exclude<ServerAddress, { socketPath: string }>): Socket {
  const socket = connectTls({
    host,
    port,
    ...fleetTls(identity()),
    ALPNProtocols: [LINK_PROTOCOL],
    // Which one leads is not for the gateway to say.
    ...anyServer,
  })
  return socket.setNoDelay(true).setKeepAlive(true, PROBE_AFTER_MS)
}
