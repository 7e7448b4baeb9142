// Whether a request is meant for this service: by the host it names (reliability S19). A page of a stranger's whose name
// leads here, as with DNS rebinding, would otherwise speak to the API from inside somebody's network.

import type { IncomingMessage } from 'node:http'
import { AppError } from '../../contract/errors.ts'
import { unmapped } from '../../lib/address-ranges.ts'

/** A name or an IPv4 address, perhaps with a dot behind it, or an IPv6 address in brackets; then perhaps a port. */
const HOST = /^(?:([a-z0-9_.-]{1,253}?)\.?|\[([0-9a-f:.]{2,45})\])(?::\d{0,5})?$/i

export type HostCheck = (request: IncomingMessage) => boolean

/**
 * Ours are the host of the public URL, those of `BERTH_API_HOSTS`, localhost, and the address that the connection was made
 * to: no page of another site has an address for its name. Without a host, as in HTTP/1.0, nobody else can be meant.
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
    `This host is not the API's: send the call to ${publicUrl}. Other names for it are set by BERTH_API_HOSTS.`,
  )
}
