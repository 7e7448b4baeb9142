// The fetcher's settings for the one registry it may use: its address, and only its credentials.

import type { HostPort } from '../../../lib/dial.ts'

/** The operator's mirror of a registry: `name` (and `port`, if set) stand for `address`. */
export type Mirror = { name: string; port: number | null; address: HostPort }

export type Endpoint = {
  /** The name in the fetcher's URLs. */
  location: string
  /** Null: the registry has no mirror. */
  mirror: Mirror | null
  /** Whether plain HTTP, or TLS without a valid certificate, is accepted. */
  insecure: boolean
}

/**
 * The name of a mirror without TLS. HTTP clients use no proxy for loopback addresses, and a mirror is often on one.
 */
const MIRROR_ALIAS = 'mirror.berth.local'

/**
 * `mirrors` as in BERTH_REGISTRY_MIRRORS: registry host → `host`, `host:port`, `http://…` or `https://…`.
 * Only `https://` insists on a certificate: a mirror is a host the operator vouches for.
 */
export function findEndpoint(registry: string, mirrors: Record<string, string>): Endpoint {
  const mirror = Object.hasOwn(mirrors, registry) ? mirrors[registry] : undefined
  if (mirror === undefined) return { location: registry, mirror: null, insecure: false }
  const secure = mirror.startsWith('https://')
  const url = new URL(mirror.includes('://') ? mirror : `http://${mirror}`)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = Number(url.port || (secure ? 443 : 80))
  const address = { host, port }
  return secure
    ? { location: url.host, mirror: { name: host, port, address }, insecure: false }
    : { location: MIRROR_ALIAS, mirror: { name: MIRROR_ALIAS, port: null, address }, insecure: true }
}

/** Returns a `registries.conf` with one registry. */
export function registriesConf(registry: string, endpoint: Endpoint): string {
  return [
    'unqualified-search-registries = []',
    '[[registry]]',
    `prefix = ${JSON.stringify(registry)}`,
    `location = ${JSON.stringify(endpoint.location)}`,
    `insecure = ${endpoint.insecure}`,
    '',
  ].join('\n')
}

/**
 * Returns the part of the operator's credentials (`{"auths": {…}}`, as Docker and skopeo write it) for this host: a
 * registry must not get another one's. A mirror's are under the mirror's own name.
 */
export function pickCredentials(
  authFile: string,
  registry: string,
  mirror: string | undefined,
  endpoint: Endpoint,
) {
  const parsed: unknown = JSON.parse(authFile)
  const auths = fieldOf(parsed, 'auths')
  const wanted = mirror === undefined ? registry : mirror.replace(/^https?:\/\//, '')
  const picked: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(auths)) {
    const [host = '', ...path] = key
      .replace(/^https?:\/\//, '')
      .replace(/\/v[12]\/?$/, '')
      .split('/')
    if ((host === 'index.docker.io' ? 'docker.io' : host) !== wanted) continue
    picked[[endpoint.location, ...path.filter((part) => part !== '')].join('/')] = value
  }
  return JSON.stringify({ auths: picked })
}

function fieldOf(value: unknown, name: string): object {
  const field: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
  return typeof field === 'object' && field !== null ? field : {}
}
