// /e2b: the calls of clients of another interface (decisions/e2b.md). Below /e2b/sandbox is what is inside of a sandbox,
// which a header names; everything else is the control plane. All of it runs as operations of the API.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { notFound } from '../../contract/errors.ts'
import type { App } from '../../app.ts'
import { logError } from '../http/errors.ts'
import { sendJson } from '../http/response.ts'
import type { Operations } from '../operation.ts'
import { findControlRoute } from './control/routes.ts'
import { sendDoorError } from './errors.ts'
import type { SandboxDoor } from './sandbox-door.ts'
import type { Arrived } from './sandbox-call.ts'
import { countCall, orRefused } from './refused.ts'
import { newSender } from './run.ts'
import { clientOf, presentedKey } from './sender.ts'
import { goneWith } from '../http/gone.ts'
import { serveVolumeContent, VOLUME_CONTENT } from './volume/content.ts'

export const e2bMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export const E2B_PATHS = '/e2b/*'
const E2B_PREFIX = '/e2b'
const SANDBOX_PREFIX = `${E2B_PREFIX}/sandbox`

type Exchange = {
  id: string
  request: IncomingMessage
  response: ServerResponse
  peer: string
  stopping: AbortSignal
}

export type E2bEndpoint = { serve: (exchange: Exchange) => Promise<void> }

/** Files, and what is typed: as long as their senders take. */
export function comesSlowly(url: string): boolean {
  return (
    url.startsWith(`${SANDBOX_PREFIX}/files`) ||
    url.startsWith(`${SANDBOX_PREFIX}/process.Process/StreamInput`) ||
    url.startsWith(`${E2B_PREFIX}${VOLUME_CONTENT}`)
  )
}

export function createE2bEndpoint(app: App, operations: Operations): E2bEndpoint {
  let opened: Promise<SandboxDoor> | null = null
  return {
    serve: async ({ id, request, response, peer, stopping }) => {
      const signal = AbortSignal.any([goneWith(response).signal, stopping])
      const arrived = { app, operations, requestId: id, request, response, peer, stopping, signal }
      try {
        const { pathname, searchParams } = new URL(request.url ?? '/', 'http://door')
        if (pathname === SANDBOX_PREFIX || pathname.startsWith(`${SANDBOX_PREFIX}/`)) {
          const door = await (opened ??= openDoor())
          await door.serve(arrived, pathname.slice(SANDBOX_PREFIX.length), searchParams)
        } else if (pathname.startsWith(`${E2B_PREFIX}${VOLUME_CONTENT}`))
          await serveVolumeContent(arrived, pathname.slice(E2B_PREFIX.length), searchParams)
        else await serveControl(arrived, pathname.slice(E2B_PREFIX.length), searchParams)
      } catch (error) {
        logError(app.log, error, id)
        sendDoorError(response, error)
      }
    },
  }
}

async function serveControl(arrived: Arrived, path: string, query: URLSearchParams): Promise<void> {
  const { app, operations, request, response, peer, requestId } = arrived
  const presented = presentedKey(request, app.config.publicUrl)
  const caller = await operations.authenticate({ presented, peer })
  const sender = newSender({ caller, client: clientOf(request), presented, peer, requestId })
  const { status, body, headers } = await orRefused(arrived, sender, async () => {
    const found = findControlRoute(request.method ?? '', path)
    if (found === null) throw notFound('call', `${request.method} ${path}`)
    const answer = await found.route.serve({ ...arrived, sender, query }, found.id, found.buildId)
    await countCall(arrived, sender)
    return answer
  })
  if (body !== null) return sendJson(response, status, body, headers)
  response.writeHead(status, { 'cache-control': 'no-store', ...headers }).end()
}

/** What speaks the protocol of sandboxes is loaded with the first call to one. */
async function openDoor(): Promise<SandboxDoor> {
  const { createSandboxDoor } = await import('./sandbox-door.ts')
  return createSandboxDoor()
}
