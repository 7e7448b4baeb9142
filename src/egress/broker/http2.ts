// The hosts of secrets for clients that speak HTTP/2 alone, as those of gRPC do: one session of a machine is one session to the
// host, and each request is decided by itself.

import {
  type ClientHttp2Session,
  connect,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Stream,
} from 'node:http2'
import type { SecureContext, TLSSocket } from 'node:tls'
import { canonicalHostName } from '../../lib/egress/entry.ts'
import { type Door, turnsOf } from '../door.ts'
import { noteBrokeredEnd } from '../egress-log.ts'
import { bodyOf, misdirected, type Refused } from '../refused.ts'
import { work } from '../shares.ts'
import { through } from '../through.ts'
import { masked } from './mask.ts'
import type { Place } from './place.ts'
import type { Prepared } from './prepared.ts'
import type { Header } from './put-secrets.ts'
import { putInto } from './requests.ts'
import { connectUpstream, refusalOf, UpstreamError } from './upstream.ts'

type To = {
  machine: string
  host: string
  secrets: () => Prepared
  trusted: () => Promise<SecureContext>
}

const PORT = 443
const HEAD_BYTES = 16 * 1024
const STREAMS = 100
const SETTINGS = { enablePush: false, maxConcurrentStreams: STREAMS, maxHeaderListSize: HEAD_BYTES }

/**
 * Connects to the host for a machine whose TLS ends at `inside`. Returns a function that serves the machine, once its
 * handshake is over.
 */
export function openHttp2(
  door: Door,
  inside: TLSSocket,
  { machine, host, secrets, trusted }: To,
): () => void {
  const gone = new AbortController()
  const place: Place = { machine, host, secrets, used: new Set(), counted: null }
  const cut = () => void inside.destroy()
  const forget = door.open.add(machine, { name: host, port: PORT, cut, used: place.used })
  inside.once('close', () => {
    gone.abort()
    forget()
  })
  const connecting = connectUpstream(door, { machine, host, trusted, protocol: 'h2' }, gone.signal)
  connecting.catch(() => {})
  return () => {
    connecting
      .then((upstream) => join(door, place, inside, upstream))
      .catch((error: unknown) => refuseAll(inside, refusalOf(error, host)))
  }
}

function join(door: Door, place: Place, inside: TLSSocket, upstream: TLSSocket): void {
  if (inside.destroyed) return void upstream.destroy()
  if (upstream.alpnProtocol !== 'h2') {
    upstream.destroy()
    const message = `${place.host} does not speak HTTP/2.`
    throw new UpstreamError({ status: 502, code: 'host_unreachable', message })
  }
  inside.setTimeout(0)
  const host = connect(`https://${place.host}`, {
    createConnection: () => upstream,
    settings: { enablePush: false },
  })
  const machine = performServerHandshake(inside, { settings: SETTINGS })
  // What goes wrong with one ends the other, and a session that is gone has no peer to tell.
  for (const session of [host, machine]) session.on('error', () => {})
  host.once('goaway', () => machine.close())
  host.once('close', () => machine.destroy())
  upstream.once('close', () => noteBrokeredEnd(door, place, upstream))
  machine.once('close', () => host.destroy())
  machine.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    const begin = () => {
      if (stream.destroyed) return
      if (host.closed || host.destroyed) stream.close(constants.NGHTTP2_REFUSED_STREAM)
      else orClose(stream, () => pass(door, place, { host, stream, headers }))
    }
    const wait = door.turn(place.machine, work.request, stream)
    if (wait === null) begin()
    else void wait.then(begin)
  })
}

/** Answers a machine whose host cannot be connected to. The connection ends with its first request. */
function refuseAll(inside: TLSSocket, refused: Refused): void {
  if (inside.destroyed) return
  const machine = performServerHandshake(inside, { settings: SETTINGS })
  machine.on('error', () => {})
  machine.on('stream', (stream) => {
    stream.on('error', () => {})
    stream.once('close', () => machine.close())
    orClose(stream, () => refuse(stream, refused))
  })
}

type Asked = { host: ClientHttp2Session; stream: ServerHttp2Stream; headers: IncomingHttpHeaders }

function pass(door: Door, place: Place, { host, stream, headers }: Asked): void {
  if (!isFor(place.host, headers)) return refuse(stream, misdirected(place.host))
  // The path is one of the headers here, and as a part of the URL it is left as it is.
  const isPseudo = ([name]: Header) => name.startsWith(':')
  const all = listed(headers)
  const { ':method': method = '', ':path': target = '' } = headers
  const put = putInto(
    door,
    place,
    { method, target },
    all.filter((header) => !isPseudo(header)),
  )
  if ('status' in put) return refuse(stream, put)
  put.note()
  const turn = turnsOf(door, place.machine)
  const given = named([...all.filter(isPseudo), ...put.headers])
  const outgoing = host.request(given, { endStream: stream.endAfterHeaders })
  outgoing.on('error', () => {})
  outgoing.once('close', () => {
    // An answer that is complete still has to be sent on, with its trailers.
    if (outgoing.rstCode !== constants.NGHTTP2_NO_ERROR) stream.close(outgoing.rstCode)
    else if (!stream.headersSent) stream.close(constants.NGHTTP2_INTERNAL_ERROR)
  })
  stream.once('close', () => outgoing.close(stream.rstCode))
  outgoing.once('response', (answered) => {
    let trailers: OutgoingHttpHeaders = {}
    outgoing.once('trailers', (last) => (trailers = named(masked(listed(last), put.mask))))
    stream.once('wantTrailers', () => orClose(stream, () => stream.sendTrailers(trailers)))
    orClose(stream, () => {
      const head = named(masked(listed(answered), put.mask))
      stream.respond(head, { waitForTrailers: true })
    })
    through(put.mask, outgoing, turn).pipe(stream)
  })
  if (!stream.endAfterHeaders) through(null, stream, turn).pipe(outgoing)
}

/** What either side sends may be what Node does not send on: that ends the stream, and not this process. */
function orClose(stream: ServerHttp2Stream, work: () => void): void {
  try {
    work()
  } catch {
    stream.close(constants.NGHTTP2_INTERNAL_ERROR)
  }
}

/** As for HTTP/1.1: the name of the connection and that of the request are one, and the target is a path. */
function isFor(host: string, headers: IncomingHttpHeaders): boolean {
  const { ':authority': authority = '', ':path': path = '', ':method': method = '' } = headers
  const names = [authority, ...(headers.host === undefined ? [] : [headers.host])]
  const isPath = path.startsWith('/') || path === '*'
  return (
    method !== 'CONNECT' &&
    isPath &&
    names.every((name) => canonicalHostName(name.replace(/:443$/, '')) === host)
  )
}

/** Without what Node adds for its own use, and as text: it gives a status as a number. */
function listed(headers: IncomingHttpHeaders): Header[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value ?? '']).map((each): Header => [name, String(each)]),
  )
}

/** One name may have several values. */
function named(headers: Header[]): OutgoingHttpHeaders {
  const result: Record<string, string | string[]> = {}
  for (const [name, value] of headers) {
    const before = result[name]
    result[name] = before === undefined ? value : [before, value].flat()
  }
  return result
}

function refuse(stream: ServerHttp2Stream, refused: Refused): void {
  stream.respond({ ':status': refused.status, 'content-type': 'application/json' })
  stream.end(bodyOf(refused))
  stream.close()
}
