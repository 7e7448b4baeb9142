// Where an answer may be sent: to a site by https, to a program on the person's own computer, or to an app that has a
// scheme of its own (RFC 8252). Pure. Judged by the text itself: what two parsers may read in two ways is refused.

export type Redirect = {
  kind: 'web' | 'loopback' | 'app'
  /** The host, or the scheme of an app: what can be shown of it. */
  name: string
}

const MAX_LENGTH = 512

const web = /^https:\/\/([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?(?:[/?].*)?$/i
/** Host, and whatever stands behind the port. */
const loopback = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?((?:[/?].*)?)$/
const app = /^([a-z][a-z0-9+.-]*):/

/** Schemes of apps that have no dot in them, as they should. All others are those of browsers and systems. */
const appSchemes = ['cursor', 'vscode', 'vscode-insiders', 'windsurf']

/** Null for what no answer may be sent to. */
export function readRedirect(uri: string): Redirect | null {
  // Printable, without a fragment, user, wildcard, or what some take for a slash.
  if (uri.length > MAX_LENGTH || !/^[\x21-\x7e]+$/.test(uri) || /[#*\\<>"'`]/.test(uri)) return null
  if (!URL.canParse(uri)) return null
  const host = web.exec(uri)?.[1]
  if (host !== undefined) return { kind: 'web', name: host.toLowerCase() }
  if (loopback.test(uri)) return { kind: 'loopback', name: loopback.exec(uri)?.[1] ?? '' }
  const scheme = app.exec(uri)?.[1] ?? ''
  return scheme.includes('.') || appSchemes.includes(scheme) ? { kind: 'app', name: scheme } : null
}

/** Equal to the letter, but for the port of a program on the person's own computer, which it gets anew each time. */
export function redirectMatches(registered: string, asked: string): boolean {
  if (readRedirect(asked) === null) return false
  return registered === asked || (loopback.test(asked) && withoutPort(registered) === withoutPort(asked))
}

/** Of a redirect to the person's own computer: without the port. All others stay as they are. */
export function withoutPort(uri: string): string {
  const [, host, rest] = loopback.exec(uri) ?? []
  return host === undefined ? uri : `http://${host}${rest}`
}

/** With fields of an answer behind those it has. */
export function withAnswer(uri: string, fields: Record<string, string | null>): string {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) if (value !== null) given.append(name, value)
  return `${uri}${uri.includes('?') ? '&' : '?'}${given.toString()}`
}
