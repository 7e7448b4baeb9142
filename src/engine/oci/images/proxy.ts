// The only way out of the fetch jail: an HTTP proxy on a unix socket. It decides on every connection, including those
// of redirects and authentication realms, and counts incoming bytes. TLS is between fetcher and registry, so the
// proxy sees no content; plain HTTP is only allowed to the mirror.

import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex, Readable } from 'node:stream'
import { AddressRefused, dial, dialPublic, dialThroughProxy, type HostPort } from '../../../lib/dial.ts'
import type { Mirror } from './registry-settings.ts'

export type ProxyOptions = {
  socketPath: string
  mirror: Mirror | null
  upstreamProxy: HostPort | null
  maxBytes: number
  stallMs: number
}

/** The first error, if there was one. */
export type ProxyVerdict = 'refused' | 'unreachable' | 'too-large' | 'stalled'

export type Proxy = { verdict(): ProxyVerdict | null; received(): number; close(): Promise<void> }

/** The traffic of one pull: its open connections, the bytes received, and the first error. */
type Traffic = { connections: Set<Duplex>; bytes: number; verdict: ProxyVerdict | null }

export async function openProxy(options: ProxyOptions): Promise<Proxy> {
  const traffic: Traffic = { connections: new Set(), bytes: 0, verdict: null }
  const server = createServer((incoming, answer) => forward(options, traffic, incoming, answer))
  server.on('connect', (incoming: IncomingMessage, client: Duplex) => {
    void tunnel(options, traffic, incoming.url ?? '', client)
  })
  server.on('connection', (client: Duplex) => track(traffic, client))
  server.listen(options.socketPath)
  await once(server, 'listening')

  return {
    verdict: () => traffic.verdict,
    received: () => traffic.bytes,
    close: async () => {
      cutOff(traffic)
      const closed = once(server, 'close')
      server.close()
      await closed
    },
  }
}

/** `CONNECT host:port`: from here on bytes pass unchanged. */
async function tunnel(
  options: ProxyOptions,
  traffic: Traffic,
  authority: string,
  client: Duplex,
): Promise<void> {
  client.on('error', () => client.destroy())
  try {
    const server = await open(options, parseAuthority(authority))
    if (client.destroyed) return void server.destroy()
    track(traffic, server)
    server.setTimeout(options.stallMs, () => {
      blame(traffic, 'stalled')
      server.destroy()
    })
    server.on('error', () => client.destroy()).on('close', () => client.destroy())
    client.on('close', () => server.destroy())
    client.write('HTTP/1.1 200 Connection established\r\n\r\n')
    count(options, traffic, server)
    server.pipe(client)
    client.pipe(server)
  } catch (error) {
    blame(traffic, error instanceof AddressRefused ? 'refused' : 'unreachable')
    client.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n')
  }
}

async function open({ mirror, upstreamProxy }: ProxyOptions, target: HostPort): Promise<Socket> {
  if (mirror && isMirror(mirror, target)) return await dial(mirror.address)
  if (upstreamProxy) return await dialThroughProxy(upstreamProxy, target)
  return await dialPublic(target)
}

/** `GET http://…`, only for the mirror: to another host it would be a downgrade. */
function forward(
  options: ProxyOptions,
  traffic: Traffic,
  incoming: IncomingMessage,
  answer: ServerResponse,
): void {
  const { mirror, stallMs } = options
  const url = URL.parse(incoming.url ?? '')
  const target = { host: url?.hostname ?? '', port: Number(url?.port || 80) }
  if (url?.protocol !== 'http:' || !mirror || !isMirror(mirror, target)) {
    blame(traffic, 'refused')
    answer.writeHead(403).end()
    return
  }
  const { method = 'GET', headers } = incoming
  const path = url.pathname + url.search
  const outgoing = request({ ...mirror.address, method, path, headers, agent: false, timeout: stallMs })
  // The client may disconnect before the answer.
  answer.on('close', () => outgoing.destroy())
  outgoing.on('timeout', () => {
    blame(traffic, 'stalled')
    outgoing.destroy()
  })
  outgoing.on('error', () => {
    blame(traffic, 'unreachable')
    if (answer.headersSent) answer.destroy()
    else answer.writeHead(502).end()
  })
  outgoing.on('response', (response) => {
    count(options, traffic, response)
    response.on('error', () => answer.destroy())
    answer.writeHead(response.statusCode ?? 502, response.headers)
    response.pipe(answer)
  })
  incoming.pipe(outgoing)
}

function isMirror(mirror: Mirror, target: HostPort): boolean {
  return mirror.name === target.host && (mirror.port === null || mirror.port === target.port)
}

function count({ maxBytes }: ProxyOptions, traffic: Traffic, stream: Readable): void {
  stream.on('data', (chunk: Buffer) => {
    traffic.bytes += chunk.length
    if (traffic.bytes <= maxBytes) return
    blame(traffic, 'too-large')
    cutOff(traffic)
  })
}

function track({ connections }: Traffic, connection: Duplex): void {
  connections.add(connection)
  connection.once('close', () => connections.delete(connection))
}

function cutOff({ connections }: Traffic): void {
  for (const connection of connections) connection.destroy()
}

function blame(traffic: Traffic, verdict: ProxyVerdict): void {
  traffic.verdict ??= verdict
}

function parseAuthority(authority: string): HostPort {
  const match = /^(.+):(\d{1,5})$/.exec(authority)
  if (!match) throw new AddressRefused(authority)
  return { host: (match[1] ?? '').replace(/^\[|\]$/g, ''), port: Number(match[2]) }
}
