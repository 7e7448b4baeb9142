// What a page is: a path, and the HTML it answers with.

import type { App } from '../app.ts'

export type PageRequest = {
  query: URLSearchParams
  /** The fields of a form; empty unless it was posted. */
  form: URLSearchParams
  sessionToken: string | null
  fromOwnPages: boolean
  wantsHtml: boolean
}

export type PageAnswer =
  | { status: number; html: string; headers?: Record<string, string> }
  | { status: number; json: unknown }

export type Page = {
  method: 'GET' | 'POST'
  path: string
  answer: (app: App, request: PageRequest) => Promise<PageAnswer>
}
