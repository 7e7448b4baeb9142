// The URL and the credential of the service: from the caller, else from the environment, else from the file that a
// Berth on this machine writes for its operator.

import { BerthError } from './errors.ts'
import type { RequestInit, Response, WebSocketClass } from './platform.ts'

/** What a call is sent with: `fetch`, or one that does something besides. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export type BerthOptions = {
  /** Base URL of the service. Default: BERTH_URL. */
  url?: string | undefined
  /** An API key or an access token, or what gives one for each call. Default: BERTH_API_KEY. */
  apiKey?: string | (() => string | Promise<string>) | undefined
  /** How long a call may take until its answer begins, in ms. What waits for a unit or a command has that time besides. */
  timeoutMs?: number | undefined
  /** How often a call that failed is sent again, where that cannot do it twice. */
  retries?: number | undefined
  /** A `retry-after` above this is thrown and not waited for, in ms. */
  maxRetryAfterMs?: number | undefined
  /** A word before the library's own in the User-Agent: `my-agent/1.2`. */
  userAgent?: string | undefined
  /** In place of the runtime's own. */
  fetch?: Fetch | undefined
  /** In place of the runtime's own, which Node has since 22. For terminals. */
  WebSocket?: WebSocketClass | undefined
}

export type Settings = {
  url: string
  apiKey: () => string | Promise<string>
  timeoutMs: number
  retries: number
  maxRetryAfterMs: number
  userAgent: string
  fetch: Fetch
  WebSocket: WebSocketClass | undefined
}

export const version = '0.1.0'

const defaults = { timeoutMs: 60_000, retries: 2, maxRetryAfterMs: 30_000 }

/** Throws `not_configured` without a URL or a key. */
export function settingsOf(options: BerthOptions): Settings {
  const { url, apiKey } = placeOf(options)
  return {
    url: url.replace(/\/+$/, ''),
    apiKey: typeof apiKey === 'string' ? () => apiKey : apiKey,
    timeoutMs: options.timeoutMs ?? defaults.timeoutMs,
    retries: options.retries ?? defaults.retries,
    maxRetryAfterMs: options.maxRetryAfterMs ?? defaults.maxRetryAfterMs,
    userAgent: `${options.userAgent === undefined ? '' : `${options.userAgent} `}berth-sdk/${version}`,
    // Called as a function of its own: browsers refuse it as a method of another object.
    fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init)),
    WebSocket: options.WebSocket ?? globalThis.WebSocket,
  }
}

type Place = { url: string; apiKey: NonNullable<BerthOptions['apiKey']> }

function placeOf(options: BerthOptions): Place {
  const given = {
    url: options.url ?? environment('BERTH_URL'),
    apiKey: options.apiKey ?? environment('BERTH_API_KEY'),
  }
  if (given.url !== undefined && given.apiKey !== undefined)
    return checked({ url: given.url, apiKey: given.apiKey })
  const file = operatorsFile()
  // The key of the file is for the service of the file: it is not sent anywhere else.
  if (file && (given.url === undefined || given.url.replace(/\/+$/, '') === file.url))
    return checked({ url: file.url, apiKey: given.apiKey ?? file.apiKey })
  const missing = given.url === undefined ? 'BERTH_URL' : 'BERTH_API_KEY'
  throw new BerthError('not_configured', `Set ${missing}, or give new Berth({ url, apiKey }).`)
}

function checked(place: Place): Place {
  if (!/^https?:\/\/[^/]/.test(place.url))
    throw new BerthError(
      'not_configured',
      `"${place.url}" is no URL of a service: it begins with http:// or https://.`,
    )
  if (typeof place.apiKey === 'string' && !/^[\x21-\x7e]+$/.test(place.apiKey))
    throw new BerthError('not_configured', 'The API key has characters that no key has: was it copied whole?')
  return place
}

/** What Node, Deno and Bun have of `process`, and browsers have not. */
type Runtime = {
  env?: Record<string, string | undefined>
  getBuiltinModule?: (name: string) => { readFileSync(path: string, encoding: 'utf8'): string }
}

const runtime = (): Runtime => (globalThis as { process?: Runtime }).process ?? {}

function environment(name: string): string | undefined {
  const value = runtime().env?.[name]
  return value === '' ? undefined : value
}

/** Of a Berth on this machine, for those who may read it; null elsewhere. */
function operatorsFile(): { url: string; apiKey: string } | null {
  const directory = environment('BERTH_DATA_DIR') ?? '/var/lib/berth'
  try {
    const text = runtime().getBuiltinModule?.('node:fs').readFileSync(`${directory}/credentials.json`, 'utf8')
    const { baseUrl, apiKey } = JSON.parse(text ?? 'null') as { baseUrl?: unknown; apiKey?: unknown }
    return typeof baseUrl === 'string' && typeof apiKey === 'string'
      ? { url: baseUrl.replace(/\/+$/, ''), apiKey }
      : null
  } catch {
    return null
  }
}
