// For which requests to its hosts a secret may be used. Pure. A path is compared as it was sent, so one that a server could
// read as another is for no secret with paths.

/** Without `methods`, every method; without `paths`, every path. */
export type SecretRequests = { methods?: string[]; paths?: string[] }

export type RequestTarget = {
  method: string
  /** With its query, which is not compared. */
  target: string
  /** In lower case. */
  headers: readonly string[]
}

export const requestMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

/** What some servers take in place of the method or the path of a request. */
const OVERRIDES = new Set([
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-original-url',
  'x-rewrite-url',
])

const PATH = /^(?:\/(?:[A-Za-z0-9\-._~!$&'()+,;=:@]|%[0-9A-Fa-f]{2})*)+$/
/** A point, slash, backslash or percent sign, or a control character, written as a code. */
const HIDDEN = /%(?:2[ef5]|5c|[01][0-9a-f]|7f)/i

/** Whether a rule's path is one: exact, or with `/*` at its end for all below. */
export function isSecretPath(path: string): boolean {
  return isPlainPath(path.replace(/\/\*$/, '/'))
}

export function mayBeUsedFor(
  { methods, paths }: SecretRequests,
  { method, target, headers }: RequestTarget,
): boolean {
  if (methods === undefined && paths === undefined) return true
  if (headers.some((name) => OVERRIDES.has(name))) return false
  if (methods !== undefined && !methods.includes(method)) return false
  if (paths === undefined) return true
  const [path = ''] = target.split('?')
  return isPlainPath(path) && paths.some((rule) => covers(rule, path))
}

function covers(rule: string, path: string): boolean {
  if (!rule.endsWith('/*')) return rule === path
  const below = rule.slice(0, -1)
  return path.startsWith(below) && path.length > below.length
}

/** Whether every server reads the same path. */
function isPlainPath(path: string): boolean {
  if (!PATH.test(path) || HIDDEN.test(path) || path.includes('//')) return false
  // Some servers take away what follows a semicolon before they look at the points.
  return path.split('/').every((segment) => !/^\.{1,2}(?:;|$)/.test(segment))
}
