// Builds the head of a response for the visitor. Pure. A unit controls only its own host name: nothing it sends may
// affect the names of other units, or connections they share.

const dropped = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  // Would move visits of this name to another server, past the gateway.
  'alt-svc',
  // An answer of the gateway's own, for the server (handle-request.ts).
  'x-berth-outcome',
])

/** Only with these values does a private link, which is in the host name, never leave its own origin. */
const keepsSecret = ['no-referrer', 'same-origin']

export type ResponseHead = { headers: string[]; isEventStream: boolean; hasLength: boolean }

/** `host`: the unit's host as requested; a private one is a secret that no page may pass on. */
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
    // It would clear the cookies of the whole registrable domain, which includes other units.
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

/** Whether a cookie is only for the unit's own host. Browsers separate attributes only at `;`. */
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
