// What a page is: a path, and the HTML it answers with.

import type { App } from '../../app.ts'
import { forbidden } from '../../contract/errors.ts'
import type { Route } from '../route.ts'

export type PageRequest = {
  /** What stands in the braces of the path. */
  params: Record<string, string>
  query: URLSearchParams
  /** The fields of a form; empty unless it was posted. */
  form: URLSearchParams
  sessionToken: string | null
  /** Of a sign-in with a provider that this browser has begun. */
  providerToken: string | null
  /** Of a program that waits until somebody has signed in in this browser (consent-page.ts). */
  consentTicket: string | null
  /** Address of the other end of the connection. */
  peer: string
  fromOwnPages: boolean
  wantsHtml: boolean
  /**
   * Does what a route does, as whoever sent this request and by the same wrapper: with its checks and its audit row.
   * Answers what the route would; throws what its caller would be told.
   */
  perform: (route: Route, params: Record<string, string>, body?: unknown) => Promise<unknown>
}

export type PageAnswer =
  | { status: number; html: string; headers?: Record<string, string | string[]> }
  | { status: number; json: unknown }

export type Page = {
  method: 'GET' | 'POST'
  /** With parameters in braces. */
  path: string
  /** Of a form that is larger than most. */
  maxFormBytes?: number
  answer: (app: App, request: PageRequest) => Promise<PageAnswer>
}

/** For every page that changes something. Without this another site could sign a visitor in to an account of its choice. */
export function refuseForeignPages({ fromOwnPages }: PageRequest): void {
  if (!fromOwnPages) throw forbidden('This form was sent from another site.')
}
