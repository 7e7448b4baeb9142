// The only way to read a document at an address that an untrusted party named (reliability S10): HTTPS to a public
// host, whose address is checked when connecting; no redirects, cookies or proxy; limited in size and total time.

import { request } from 'node:http'
import type { Socket } from 'node:net'
import { connect } from 'node:tls'
import { SECOND } from './clock.ts'
import { dialPublic, type HostPort } from './dial.ts'

const WITHIN_MS = 5 * SECOND
const MAX_BYTES = 65_536
const HTTPS_PORT = 443

/** A JSON document, not yet parsed. `maxAgeS`: how long the host allows it to be cached; null if it does not say. */
export type PublicDocument = { body: Buffer; maxAgeS: number | null }

/** Throws for anything that is not such a document. Clients must not see the details of the error. */
export type PublicFetch = (url: URL) => Promise<PublicDocument>

/** `dial` connects to a public host or throws; `ca` replaces the default root certificates. */
export function createPublicFetch({
  dial = (target: HostPort) => dialPublic(target),
  ca,
}: {
  dial?: (target: HostPort) => Promise<Socket>
  ca?: string
} = {}): PublicFetch {
  return async (url) => {
    if (url.protocol !== 'https:') throw new Error('only documents by https are read')
    const signal = AbortSignal.timeout(WITHIN_MS)
    const target = { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || HTTPS_PORT) }
    const socket = await within(signal, dial(target))
    try {
      const secure = connect({ socket, servername: target.host, ...(ca === undefined ? {} : { ca }) })
      return await read(url, secure, signal)
    } finally {
      socket.destroy()
    }
  }
}

/** Closes a connection that is established too late. */
async function within(signal: AbortSignal, dialled: Promise<Socket>): Promise<Socket> {
  const { promise, reject } = Promise.withResolvers<never>()
  signal.addEventListener('abort', () => reject(new Error('the host cannot be reached in time')), {
    once: true,
  })
  try {
    return await Promise.race([dialled, promise])
  } catch (error) {
    void dialled.then(
      (socket) => socket.destroy(),
      () => {},
    )
    throw error
  }
}

async function read(url: URL, socket: Socket, signal: AbortSignal): Promise<PublicDocument> {
  const { promise, resolve, reject } = Promise.withResolvers<PublicDocument>()
  // The connection may break at any point before the listeners below are set.
  socket.on('error', reject)
  const asked = request({
    host: url.hostname,
    path: url.pathname + url.search,
    headers: { host: url.host, accept: 'application/json', 'user-agent': 'Berth', connection: 'close' },
    createConnection: () => socket,
    signal,
  })
  asked.on('error', reject)
  asked.on('response', (response) => {
    const type = (response.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
    const isJson = type === 'application/json' || /^application\/[\w.-]+\+json$/.test(type)
    if (response.statusCode !== 200 || !isJson || response.headers['content-encoding'] !== undefined) {
      return reject(new Error('the URL has no JSON document'))
    }
    const chunks: Buffer[] = []
    let bytes = 0
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > MAX_BYTES) reject(new Error('the document is too large'))
      else chunks.push(chunk)
    })
    response.on('error', reject)
    response.on('end', () => {
      resolve({ body: Buffer.concat(chunks), maxAgeS: maxAgeOf(response.headers['cache-control']) })
    })
  })
  asked.end()
  return await promise
}

function maxAgeOf(cacheControl: string | undefined): number | null {
  if (/\bno-(store|cache)\b/i.test(cacheControl ?? '')) return 0
  const [, seconds] = /\bmax-age=(\d{1,9})\b/i.exec(cacheControl ?? '') ?? []
  return seconds === undefined ? null : Number(seconds)
}
