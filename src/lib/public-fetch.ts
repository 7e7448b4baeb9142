// The one way to read a document at an address that a stranger has named (reliability S10): HTTPS to a public host, whose
// address is checked as it is connected to; no redirects, no cookies, no proxy; bounded in size and in time as a whole.

import { request } from 'node:http'
import type { Socket } from 'node:net'
import { connect } from 'node:tls'
import { SECOND } from './clock.ts'
import { dialPublic, type HostPort } from './dial.ts'

const WITHIN_MS = 5 * SECOND
const MAX_BYTES = 65_536
const HTTPS_PORT = 443

/** A document in JSON, unread. `maxAgeS`: how long its host says it stays as it is; null where it does not say. */
export type PublicDocument = { body: Buffer; maxAgeS: number | null }

/** Throws for whatever is not such a document: what exactly went wrong is nobody's to know who may ask. */
export type PublicFetch = (url: URL) => Promise<PublicDocument>

/** `dial` connects to a public host or throws; `ca` is whom to trust in the place of the authorities of the web. */
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

/** A connection that comes too late is closed. */
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
  // The connection may break before, between and behind what is listened to below.
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
      return reject(new Error('no document in JSON is there'))
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
