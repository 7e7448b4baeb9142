// What of a unit's answer reaches the visitor. Pure. A unit owns its own host name and no more: nothing it says
// may reach into the names of other units, or into connections they share.

const dropped = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  // Moves visits of this name to another server, past the gateway.
  'alt-svc',
])

/** With these alone a private link, which is in the host name, never leaves its own origin. */
const keepsSecret = ['no-referrer', 'same-origin']

export type ResponseHead = { headers: string[]; isEventStream: boolean; hasLength: boolean }

/** `host`: the unit's, as asked for; a private one's is a secret that no page may pass on. */
export function headersForVisitor(
  rawHeaders: readonly string[],
  { host, isPrivate }: { host: string; isPrivate: boolean },
): ResponseHead {
  const headers: string[] = []
  let isEventStream = false
  let hasLength = false
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase()
    const value = rawHeaders[at + 1] ?? ''
    if (dropped.has(name)) continue
    if (name === 'set-cookie' && !staysWithin(value, host)) continue
    // Cookies are cleared in the whole registrable domain, which other units are part of.
    if (name === 'clear-site-data' && /cookies|\*/i.test(value)) continue
    if (name === 'referrer-policy' && isPrivate) {
      if (!keepsSecret.includes(value.trim().toLowerCase())) continue
    }
    if (name === 'content-type') isEventStream = value.toLowerCase().startsWith('text/event-stream')
    if (name === 'content-length') hasLength = true
    headers.push(rawHeaders[at] ?? '', value)
  }
  if (isPrivate && !has(headers, 'referrer-policy')) headers.push('referrer-policy', 'same-origin')
  return { headers, isEventStream, hasLength }
}

/** Whether a cookie is for the unit's own host alone. Browsers take attributes apart at `;` and nothing else. */
function staysWithin(cookie: string, host: string): boolean {
  if (!/domain/i.test(cookie)) return true
  const own = host.toLowerCase().replace(/\.?(?::\d*)?$/, '')
  return cookie
    .split(';')
    .slice(1)
    .every((attribute) => {
      const equals = attribute.indexOf('=')
      const name = (equals < 0 ? attribute : attribute.slice(0, equals)).trim().toLowerCase()
      if (name !== 'domain' || equals < 0) return true
      const domain = attribute
        .slice(equals + 1)
        .trim()
        .toLowerCase()
      return domain === '' || domain.replace(/^\./, '') === own
    })
}

function has(headers: readonly string[], name: string): boolean {
  return headers.some((header, at) => at % 2 === 0 && header.toLowerCase() === name)
}
