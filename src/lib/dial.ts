// Connects to public hosts that an untrusted party named: registries, and OAuth client documents. The addresses of
// the name are checked, and the connection is made to a checked address, so that a second DNS answer cannot change it
// (reliability S15).

import { lookup } from 'node:dns/promises'
import { connect, isIP, type Socket } from 'node:net'
import { isPublicAddress } from './address-ranges.ts'

export type HostPort = { host: string; port: number }

/** The address is not public. */
export class AddressRefused extends Error {}

const CONNECT_TIMEOUT_MS = 10_000
const HTTPS_PORT = 443

async function lookUp(name: string): Promise<string[]> {
  return (await lookup(name, { all: true, order: 'ipv4first' })).map((found) => found.address)
}

/** Connects to a public host, only on the HTTPS port. */
export async function dialPublic(target: HostPort, resolve = lookUp): Promise<Socket> {
  if (target.port !== HTTPS_PORT) throw new AddressRefused(`port ${target.port}`)
  const addresses = isIP(target.host) ? [target.host] : await resolve(target.host)
  // One private address among public ones is enough to refuse, since no honest host has one.
  if (!addresses.every(isPublicAddress)) throw new AddressRefused(`${target.host} is not public`)
  let failure: unknown = new Error(`${target.host} has no address`)
  for (const host of addresses.slice(0, 4)) {
    try {
      return await dial({ host, port: target.port })
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

/** Connects to an address that the operator configured: a mirror or a proxy. */
export async function dial(target: HostPort): Promise<Socket> {
  const socket = connect({ ...target, noDelay: true })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const timer = setTimeout(() => socket.destroy(new Error('connect timed out')), CONNECT_TIMEOUT_MS)
  socket.once('connect', resolve).once('error', reject)
  try {
    await promise
    return socket
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Connects through the operator's proxy, which resolves the name: behind a proxy, names often cannot be resolved
 * here. Address literals are still checked.
 */
export async function dialThroughProxy(proxy: HostPort, target: HostPort): Promise<Socket> {
  if (target.port !== HTTPS_PORT) throw new AddressRefused(`port ${target.port}`)
  if (isIP(target.host) && !isPublicAddress(target.host)) throw new AddressRefused(target.host)
  const socket = await dial(proxy)
  try {
    const name = `${target.host}:${target.port}`
    socket.write(`CONNECT ${name} HTTP/1.1\r\nHost: ${name}\r\n\r\n`)
    const head = await readHead(socket)
    if (!/^HTTP\/1\.[01] 200\b/.test(head)) throw new Error('the proxy refused the connection')
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

async function readHead(socket: Socket): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let head = ''
  const onData = (chunk: Buffer) => {
    head += chunk.toString('latin1')
    const end = head.indexOf('\r\n\r\n')
    if (end < 0 && head.length < 16_384) return
    socket.off('data', onData).pause()
    if (end < 0) return reject(new Error('the proxy did not answer in HTTP'))
    // Nothing has been sent through the tunnel yet, so only the head can have arrived.
    resolve(head)
  }
  socket.on('data', onData).once('error', reject)
  socket.once('close', () => reject(new Error('the proxy closed the connection')))
  socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy(new Error('the proxy does not answer')))
  try {
    return await promise
  } finally {
    socket.setTimeout(0)
  }
}
