// The gateway's side of its questions to the server (wake-protocol.ts). The server may be away at any time: every
// failure means only that nobody could be asked.

import { connect } from 'node:net'
import type { Clock } from '../lib/clock.ts'
import { readLines } from '../lib/lines.ts'
import {
  MOST_BYTES,
  sayingSchema,
  SILENT_FOR_MS,
  type WakeAnswer,
  type WakeOperation,
  wakeOperations,
  type WakeRequest,
} from './wake-protocol.ts'

export type WakeServer = {
  /** Rejects when nobody answers. */
  ask<K extends WakeOperation>(operation: K, request: WakeRequest[K]): Promise<WakeAnswer[K]>
  /** Follows the units that stop running, across restarts of the server, until the signal aborts. */
  follow(watcher: DepartureWatcher, signal: AbortSignal): Promise<void>
}

export type DepartureWatcher = {
  /** From now on every unit that stops running is told of. */
  onThere: () => void
  onDeparture: (unitId: string) => void
  /** From now on nobody tells. */
  onAway: () => void
}

/** Between two attempts to follow: as long as a server takes to start again. */
const AGAIN_MS = 250

export function connectToServer({ socketPath, clock }: { socketPath: string; clock: Clock }): WakeServer {
  let connection: Connection | null = null
  const connected = (): Connection => {
    if (!connection || connection.isOver()) connection = openConnection(socketPath)
    return connection
  }

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

type Connection = {
  isOver(): boolean
  ask(operation: WakeOperation, request: unknown, deadlineMs: number): Promise<unknown>
  /** Until it is over; the signal ends it. */
  follow(watcher: DepartureWatcher, signal: AbortSignal): Promise<void>
}

function openConnection(socketPath: string): Connection {
  const socket = connect(socketPath)
  const asked = new Map<number, PromiseWithResolvers<unknown>>()
  const over = Promise.withResolvers<void>()
  let failure = new Error('the server is gone')
  let watcher: DepartureWatcher | null = null
  let isThere = false
  let lastId = 0

  const hear = (line: string): void => {
    silence.refresh()
    if (!isThere) watcher?.onThere()
    isThere = true
    if (line === '') return
    const saying = sayingSchema.parse(JSON.parse(line))
    if ('departed' in saying) watcher?.onDeparture(saying.departed)
    else asked.get(saying.id)?.resolve(saying.answer)
  }
  const silence = setTimeout(() => socket.destroy(new Error('the server is silent')), SILENT_FOR_MS)
  readLines(socket, MOST_BYTES, (line) => {
    try {
      hear(line)
    } catch {
      socket.destroy(new Error('the server says what nobody understands'))
    }
  })
  socket.once('error', (error) => {
    failure = error
  })
  socket.once('close', () => {
    clearTimeout(silence)
    for (const { reject } of asked.values()) reject(failure)
    if (isThere) watcher?.onAway()
    over.resolve()
  })

  return {
    isOver: () => socket.destroyed,
    async ask(operation, request, deadlineMs) {
      lastId += 1
      const id = lastId
      const answered = Promise.withResolvers<unknown>()
      asked.set(id, answered)
      const late = setTimeout(
        () => answered.reject(new Error(`no answer in time to "${operation}"`)),
        deadlineMs,
      )
      socket.write(`${JSON.stringify({ id, operation, request })}\n`)
      try {
        const answer = await answered.promise
        if (answer === null) throw new Error(`the server has no answer to "${operation}" just now`)
        return answer
      } finally {
        clearTimeout(late)
        asked.delete(id)
      }
    },
    async follow(following, signal) {
      watcher = following
      if (isThere) watcher.onThere()
      const end = () => void socket.destroy()
      signal.addEventListener('abort', end)
      await over.promise
      signal.removeEventListener('abort', end)
    },
  }
}
