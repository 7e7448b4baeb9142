// /docs, /llms.txt and /llms-full.txt: public, without credentials and without audit rows. Their data is loaded with
// the first request, so a start does not wait for it.

import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { logError, toAppError } from '../http/errors.ts'
import { send, sendError } from '../http/response.ts'
import type { App } from '../../app.ts'
import type { openSite } from './site.ts'

export const docsMethods = ['GET', 'HEAD'] as const
export const docsPaths = ['/docs', '/docs/*', '/llms.txt', '/llms-full.txt'] as const

type DocsExchange = { id: string; request: IncomingMessage; response: ServerResponse }

export type DocsEndpoint = { serve(exchange: DocsExchange): Promise<void> }

export function createDocsEndpoint(app: App): DocsEndpoint {
  let opening: ReturnType<typeof openSite> | null = null
  return {
    serve: async ({ id, request, response }) => {
      try {
        opening ??= import('./site.ts').then(async ({ openSite }) => await openSite(app.config.publicUrl))
        const site = await opening.catch((error: unknown) => {
          opening = null
          throw error
        })
        const { pathname, searchParams } = new URL(request.url ?? '', 'http://docs.invalid')
        const answer = await site.answer(pathname, searchParams)
        const tag = tagOf(answer.body)
        const isKnown = answer.status === 200 && request.headers['if-none-match'] === tag
        send(response, isKnown ? 304 : answer.status, isKnown ? '' : answer.body, {
          ...answer.headers,
          etag: tag,
        })
      } catch (error) {
        logError(app.log, error, id)
        sendError(response, toAppError(error), id)
      }
    },
  }
}

/** So that a browser that has a page already is not sent it again. */
function tagOf(body: string | Uint8Array): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
}
