// The gateway's side of its questions to the server (wake-protocol.ts). The server may be away at any time: every
// failure means only that nobody could be asked.

import { Agent, type IncomingMessage, request as httpRequest } from 'node:http'
import type { Clock } from '../lib/clock.ts'
import {
  DEPARTURES,
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
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 16, scheduling: 'lifo' })

  const send = async (path: string, body: string, signal: AbortSignal): Promise<IncomingMessage> => {
    const answered = Promise.withResolvers<IncomingMessage>()
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const request = httpRequest(
      { agent, socketPath, path: `/${path}`, method: 'POST', headers, signal },
      answered.resolve,
    )
    // Once it has answered, a broken connection shows on the response.
    request.on('error', answered.reject)
    request.end(body)
    const response = await answered.promise
    if (response.statusCode === 200) return response
    response.destroy()
    throw new Error(`the server answered ${path} with ${response.statusCode}`)
  }

  async function followOnce(watcher: DepartureWatcher, signal: AbortSignal): Promise<void> {
    const silent = new AbortController()
    const timer = setTimeout(() => silent.abort(), SILENT_FOR_MS)
    let isThere = false
    try {
      const response = await send(DEPARTURES, '', AbortSignal.any([signal, silent.signal]))
      let rest = ''
      for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
        timer.refresh()
        if (!isThere) watcher.onThere()
        isThere = true
        const lines = (rest + chunk).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) if (line !== '') watcher.onDeparture(line)
      }
    } finally {
      clearTimeout(timer)
      if (isThere) watcher.onAway()
    }
  }

  return {
    async ask(operation, request) {
      const { answer, deadlineMs } = wakeOperations[operation]
      const response = await send(operation, JSON.stringify(request), AbortSignal.timeout(deadlineMs))
      const chunks: Buffer[] = []
      for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
      return answer.parse(JSON.parse(Buffer.concat(chunks).toString('utf8'))) as WakeAnswer[typeof operation]
    },
    async follow(watcher, signal) {
      while (!signal.aborted) {
        await followOnce(watcher, signal).catch(() => {})
        await clock.sleep(AGAIN_MS, signal).catch(() => {})
      }
      agent.destroy()
    },
  }
}
