// The API as this browser calls it: with its session's cookie, always in a named team. A session without that header
// acts in the team it used last, which another tab may have changed.

import { Berth } from '@berth/sdk'
import { keepPlace } from './place.ts'

declare const __BUILD__: string

/** Which build of the dashboard this is. */
const build = __BUILD__

const clients = new Map<string, Berth>()

/** The client of a team, by its id. */
export function berthOf(teamId: string): Berth {
  const known = clients.get(teamId)
  if (known) return known
  const made = new Berth({
    url: location.origin,
    apiKey: () => '',
    retries: 1,
    maxRetryAfterMs: 2000,
    fetch: async (url, init) => await sessionFetch(teamId, url, init),
  })
  clients.set(teamId, made)
  return made
}

let outdated = false
const watchers = new Set<() => void>()

/** Whether the server has a newer dashboard than this page. */
export const isOutdated = () => outdated

export function onOutdated(watcher: () => void): () => void {
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}

async function sessionFetch(teamId: string | null, url: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers)
  // The cookie says who this is. A key beside it would be looked at first.
  headers.delete('authorization')
  if (teamId !== null) headers.set('x-berth-team', teamId)
  const response = await fetch(url, { ...init, headers })
  const served = response.headers.get('x-berth-dashboard')
  if (served !== null && served !== build && !outdated) {
    outdated = true
    for (const watcher of watchers) watcher()
  }
  if (response.status === 401) signIn()
  return response
}

/** The session is over: signing in leads back here. */
function signIn(): void {
  keepPlace(location.pathname + location.search)
  location.assign('/sign-in?ended')
}

/** Of no team: who is signed in, and where. */
export const berth = new Berth({
  url: location.origin,
  apiKey: () => '',
  fetch: async (url, init) => await sessionFetch(null, url, init),
})
