// The type of a page: a path and the HTML that answers it.

import type { App } from '../../app.ts'
import { forbidden } from '../../contract/errors.ts'
import type { Route } from '../route.ts'

export type PageRequest = {
  /** The values of the parameters in the path. */
  params: Record<string, string>
  query: URLSearchParams
  /** The fields of a form; empty unless one was posted. */
  form: URLSearchParams
  sessionToken: string | null
  /** The token of a sign-in with a provider that this browser has begun. */
  providerToken: string | null
  /** The ticket of a program that waits until a person signs in in this browser (consent.ts). */
  consentTicket: string | null
  /** The address of the client. */
  peer: string
  fromOwnPages: boolean
  wantsHtml: boolean
  /** Whether this server has a dashboard to lead people to. */
  hasDashboard: boolean
  /**
   * Runs a route as the sender of this request, through the same wrapper, with its checks and its audit row. Returns
   * the route's answer; throws the route's error. `team`: in which team, where the request does not say it.
   */
  perform: (
    route: Route,
    params: Record<string, string>,
    body?: unknown,
    asked?: { team?: string; query?: Record<string, string> },
  ) => Promise<unknown>
}

export type PageAnswer =
  | { status: number; html: string; headers?: Record<string, string | string[]> }
  | { status: number; css: string }
  | { status: number; json: unknown }

export type Page = {
  method: 'GET' | 'POST'
  /** With parameters in braces. */
  path: string
  /** The limit of a form that is larger than most. */
  maxFormBytes?: number
  answer: (app: App, request: PageRequest) => Promise<PageAnswer>
}

/**
 * For every page that changes something. Without this check another site could sign a visitor in to an account of its
 * choice.
 */
export function refuseForeignPages({ fromOwnPages }: PageRequest): void {
  if (!fromOwnPages) throw forbidden('This form was sent from another site.')
}
