// Checks that the host a request names is this service (reliability S19). Otherwise a page of another site, whose
// name resolves to this server (DNS rebinding), could call the API from inside a private network.

import type { IncomingMessage } from 'node:http'
import { AppError } from '../../contract/errors.ts'
import { unmapped } from '../../lib/address-ranges.ts'

/** A name or an IPv4 address, optionally with a final dot, or an IPv6 address in brackets; then optionally a port. */
const HOST = /^(?:([a-z0-9_.-]{1,253}?)\.?|\[([0-9a-f:.]{2,45})\])(?::\d{0,5})?$/i

export type HostCheck = (request: IncomingMessage) => boolean

/**
 * Accepts the host of the public URL, those of `BERTH_API_HOSTS`, localhost, and the address that the connection was
 * made to (a page of another site has a name, not an address). A request without a host, as in HTTP/1.0, is accepted.
 */
export function createHostCheck(config: { publicUrl: string; apiHosts: string[] }): HostCheck {
  const publicHost = new URL(config.publicUrl).hostname.replace(/^\[|\]$/g, '')
  const names = new Set(['localhost', publicHost, ...config.apiHosts].map((name) => name.toLowerCase()))
  return ({ headersDistinct, socket }) => {
    const hosts = headersDistinct['host'] ?? []
    if (hosts.length === 0) return true
    const match = hosts.length === 1 ? HOST.exec(hosts[0] ?? '') : null
    if (!match) return false
    const host = (match[1] ?? match[2] ?? '').toLowerCase()
    return names.has(host) || host === unmapped(socket.localAddress ?? '').toLowerCase()
  }
}

export function misdirected(publicUrl: string): AppError {
  return new AppError(
    'misdirected_request',
    421,
    `The host of this request is not the API's: send the call to ${publicUrl}. The operator adds other names with BERTH_API_HOSTS.`,
  )
}
