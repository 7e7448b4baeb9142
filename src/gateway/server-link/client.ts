// The gateway's client for the server (protocol.ts). The server may be unavailable at any time: every failure only
// means that it could not be asked.

import { connect } from 'node:net'
import type { Clock } from '../../lib/clock.ts'
import { openJsonLinesClient } from '../../lib/ipc/json-lines-rpc.ts'
import { createReconnecting } from '../../lib/ipc/reconnecting.ts'
import {
  MAX_BYTES,
  messageSchema,
  SILENT_FOR_MS,
  type WakeAnswer,
  type WakeOperation,
  wakeOperations,
  type WakeRequest,
} from './protocol.ts'

export type ServerClient = {
  /** Rejects if the server does not answer. */
  ask<K extends WakeOperation>(operation: K, request: WakeRequest[K]): Promise<WakeAnswer[K]>
  /** Reports units that stop running, across restarts of the server, until the signal aborts. */
  follow(watcher: RunEndWatcher, signal: AbortSignal): Promise<void>
}

export type RunEndWatcher = {
  /** From now on every unit that stops running is reported. */
  onConnected: () => void
  onRunEnded: (unitId: string) => void
  /** From now on nothing is reported. */
  onDisconnected: () => void
}

/** The delay between two connection attempts: as long as a server takes to restart. */
const AGAIN_MS = 250

export function connectToServer({ socketPath, clock }: { socketPath: string; clock: Clock }): ServerClient {
  const connected = createReconnecting(() => openConnection(socketPath))

  return {
    async ask(operation, request) {
      const { answer, deadlineMs } = wakeOperations[operation]
      const said = await connected().ask(operation, request, deadlineMs)
      return answer.parse(said) as WakeAnswer[typeof operation]
    },
    async follow(watcher, signal) {
      while (!signal.aborted) {
        await connected().follow(watcher, signal)
        await clock.sleep(AGAIN_MS, signal).catch(() => {})
      }
    },
  }
}

type Asked = { operation: WakeOperation; request: unknown }

type Connection = {
  isOver(): boolean
  ask(operation: WakeOperation, request: unknown, deadlineMs: number): Promise<unknown>
  /** Resolves when the connection ends; the signal ends it. */
  follow(watcher: RunEndWatcher, signal: AbortSignal): Promise<void>
}

function openConnection(socketPath: string): Connection {
  const socket = connect(socketPath)
  const over = Promise.withResolvers<void>()
  let watcher: RunEndWatcher | null = null
  let isThere = false

  const silence = setTimeout(() => socket.destroy(new Error('the server is silent')), SILENT_FOR_MS)
  const hear = (line: string) => {
    silence.refresh()
    if (!isThere) watcher?.onConnected()
    isThere = true
    if (line === '') return null
    const saying = messageSchema.parse(JSON.parse(line))
    if (!('event' in saying)) return saying
    watcher?.onRunEnded(saying.of)
    return null
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
