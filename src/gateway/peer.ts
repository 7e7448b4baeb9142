// Whose a connection is: the address of its client, and how it began TLS. Another host's gateway that has handed it over
// (handover/) says so instead.

import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

/** How the visitor came to the gateway that handed the connection over. */
export type Arrival = {
  address: string
  serverName: string | null
  /** Agreed on by ALPN. */
  application: string | null
  isSecure: boolean
  /** The endpoint that the port belongs to at which they came in. */
  owner: string | null
  /** The server has let them in to this port of a unit, whatever host they ask for (contract/port-host.ts). */
  portName: string | null
  /** From another host's gateway, or else from this host's server. */
  isHandedOver: boolean
}

const ARRIVAL = Symbol('arrival')

export function setArrival(socket: Socket, arrival: Arrival): void {
  Reflect.set(socket, ARRIVAL, arrival)
}

/** Returns null for a connection that came to this gateway itself. */
export function arrivalOf(socket: object): Arrival | null {
  return (Reflect.get(socket, ARRIVAL) as Arrival | undefined) ?? null
}

/** Whether the visitor came by TLS. */
export function isSecure(socket: object): boolean {
  return arrivalOf(socket)?.isSecure ?? socket instanceof TLSSocket
}

/** Returns the protocol that was agreed on by ALPN; null if none was. */
export function applicationOf(socket: TLSSocket): string | null {
  const arrival = arrivalOf(socket)
  return arrival ? arrival.application : socket.alpnProtocol || null
}

/** Returns the server name (SNI); null if the client sent none. */
export function serverNameOf(socket: TLSSocket): string | null {
  const arrival = arrivalOf(socket)
  if (arrival) return arrival.serverName
  // Node's types leave it out on the server's side. `false`: no name was sent.
  const name: unknown = Reflect.get(socket, 'servername')
  return typeof name === 'string' && name !== '' ? name : null
}

export function peerAddress(socket: Pick<Socket, 'remoteAddress'>): string {
  const address = arrivalOf(socket)?.address ?? socket.remoteAddress ?? ''
  return address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address
}

/** Returns the key that shares one limit: an IPv4 address, or an IPv6 /64, which a single visitor may own. */
export function peerOf(address: string): string {
  if (!address.includes(':')) return address
  const [before = '', after = ''] = address.split('::')
  const groups = before === '' ? [] : before.split(':')
  const tail = after === '' ? [] : after.split(':')
  const missing = address.includes('::') ? Math.max(0, 8 - groups.length - tail.length) : 0
  return [...groups, ...Array<string>(missing).fill('0'), ...tail].slice(0, 4).join(':')
}

/** The visitor's origin, as the unit is told. */
export type Origin = { address: string; proto: 'http' | 'https' }
