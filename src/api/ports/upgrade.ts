// WebSockets of a unit's port at the API's own address.

import { type IncomingMessage, validateHeaderName, validateHeaderValue } from 'node:http'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { App } from '../../app.ts'
import type { AppError } from '../../contract/errors.ts'
import { callerGone, logError, toAppError } from '../http/errors.ts'
import { type HostCheck, misdirected } from '../http/hosts.ts'
import { refuseUpgrade } from '../http/refused-upgrade.ts'
import { requestIdOf } from '../http/request.ts'
import type { Operations } from '../operation.ts'
import { runPortCall } from './endpoint.ts'
import { LISTENERS, passUpgrade } from './pass-on.ts'
import type { PortTarget } from './target.ts'
import { onceClosed } from '../http/gone.ts'

type Given = {
  app: App
  operations: Operations
  isOurs: HostCheck
  peerOf: (request: IncomingMessage) => string
  stopping: AbortSignal
}

type PortUpgrade = {
  request: IncomingMessage
  socket: Duplex
  head: Buffer
  target: PortTarget
  /** From a browser, which can send it in no header of its own. */
  bearer: string | null
}

/** A WebSocket of a unit's port: it is the unit that agrees to it. Never rejects. */
export async function servePortUpgrade(
  { app, operations, isOurs, peerOf, stopping }: Given,
  { request, socket, head, target, bearer }: PortUpgrade,
): Promise<void> {
  const requestId = requestIdOf(request)
  const gone = new AbortController()
  const signal = AbortSignal.any([gone.signal, stopping])
  socket.once('close', () => gone.abort(callerGone()))
  try {
    if (!isOurs(request)) throw misdirected(app.config.publicUrl)
    const asked = {
      request,
      target,
      requestId,
      peer: peerOf(request),
      isUpgrade: true,
      bearer,
      signal,
      abort: (reason: AppError) => gone.abort(reason),
      onceAnswered: (callback: () => void) => onceClosed(socket, callback),
    }
    await runPortCall(app, operations, asked, async (connection) => {
      const { unit, first, headers } = await passUpgrade({ request, connection, target, signal })
      socket.setMaxListeners(LISTENERS)
      unit.setMaxListeners(LISTENERS)
      socket.write(switching([...headers, 'x-request-id', requestId]), 'latin1')
      if (first.length > 0) unit.unshift(first)
      if (head.length > 0) socket.unshift(head)
      await Promise.all([pipeline(socket, unit, { signal }), pipeline(unit, socket, { signal })]).catch(
        () => {},
      )
    })
    socket.destroy()
  } catch (error) {
    logError(app.log, error, requestId)
    refuseUpgrade(socket, toAppError(error), requestId)
  }
}

function switching(headers: readonly string[]): string {
  const lines = ['HTTP/1.1 101 Switching Protocols', 'connection: Upgrade', 'upgrade: websocket']
  for (let at = 0; at < headers.length; at += 2) {
    const [name = '', value = ''] = headers.slice(at, at + 2)
    validateHeaderName(name)
    validateHeaderValue(name, value)
    lines.push(`${name}: ${value}`)
  }
  return `${lines.join('\r\n')}\r\n\r\n`
}
