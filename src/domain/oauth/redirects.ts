// Where an answer may be sent: to a site by https, to a program on the person's own computer, or to an app with its
// own scheme (RFC 8252). Pure. The text itself is checked, and what two parsers could read differently is refused.

export type Redirect = {
  kind: 'web' | 'loopback' | 'app'
  /** The host, or the scheme of an app, to show to the person. */
  name: string
}

const MAX_LENGTH = 512

const web = /^https:\/\/([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?(?:[/?].*)?$/i
/** Captures the host, and everything after the port. */
const loopback = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?((?:[/?].*)?)$/
const app = /^([a-z][a-z0-9+.-]*):/

/**
 * Schemes of known apps without the dot that RFC 8252 recommends. All other such schemes may be those of browsers and
 * systems.
 */
const appSchemes = ['cursor', 'vscode', 'vscode-insiders', 'windsurf']

/** Returns null if no answer may be sent to it. */
export function readRedirect(uri: string): Redirect | null {
  // Printable, without a fragment, user or wildcard, and without characters that some parsers read as a slash.
  if (uri.length > MAX_LENGTH || !/^[\x21-\x7e]+$/.test(uri) || /[#*\\<>"'`]/.test(uri)) return null
  if (!URL.canParse(uri)) return null
  const host = web.exec(uri)?.[1]
  if (host !== undefined) return { kind: 'web', name: host.toLowerCase() }
  if (loopback.test(uri)) return { kind: 'loopback', name: loopback.exec(uri)?.[1] ?? '' }
  const scheme = app.exec(uri)?.[1] ?? ''
  return scheme.includes('.') || appSchemes.includes(scheme) ? { kind: 'app', name: scheme } : null
}

/**
 * Equal character by character, except for the port of a program on the person's own computer, which changes each
 * time.
 */
export function redirectMatches(registered: string, asked: string): boolean {
  if (readRedirect(asked) === null) return false
  return registered === asked || (loopback.test(asked) && withoutPort(registered) === withoutPort(asked))
}

/** Removes the port of a redirect to the person's own computer. Others stay unchanged. */
export function withoutPort(uri: string): string {
  const [, host, rest] = loopback.exec(uri) ?? []
  return host === undefined ? uri : `http://${host}${rest}`
}

/** Appends the fields of an answer to the query. */
export function withAnswer(uri: string, fields: Record<string, string | null>): string {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) if (value !== null) given.append(name, value)
  return `${uri}${uri.includes('?') ? '&' : '?'}${given.toString()}`
}
