// The one way out of the fetch jail: an HTTP proxy on a unix socket. It decides for every connection, also
// those that redirects and authentication realms lead to, and counts what comes in. TLS is between the
// fetcher and the registry, so it sees no content; plain HTTP is for the mirror alone.

import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { AddressRefused, dial, dialPublic, dialThroughProxy, type HostPort } from './dial.ts'

export type ProxyOptions = {
  socketPath: string
  /** The name the fetcher knows the mirror by, and where it is. */
  mirror: { name: string; port: number | null; address: HostPort } | null
  upstreamProxy: HostPort | null
  maxBytes: number
  stallMs: number
}

/** What went wrong first, if anything did. */
export type ProxyVerdict = 'refused' | 'unreachable' | 'too-large' | 'stalled'

export type Proxy = { verdict(): ProxyVerdict | null; close(): Promise<void> }

export async function openProxy(options: ProxyOptions): Promise<Proxy> {
  const sockets = new Set<Duplex>()
  let verdict: ProxyVerdict | null = null
  let bytes = 0
  const blame = (what: ProxyVerdict) => {
    verdict ??= what
  }

  const open = async (target: HostPort): Promise<Socket> => {
    try {
      const socket = await connectTo(options, target)
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
      socket.setTimeout(options.stallMs, () => {
        blame('stalled')
        socket.destroy()
      })
      return socket
    } catch (error) {
      blame(error instanceof AddressRefused ? 'refused' : 'unreachable')
      throw error
    }
  }
  const count = (stream: NodeJS.ReadableStream) => {
    stream.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= options.maxBytes) return
      blame('too-large')
      for (const socket of sockets) socket.destroy()
    })
  }

  const server = createServer((incoming, answer) => {
    void forward(options, incoming, answer, count, blame)
  })
  server.on('connect', (incoming: IncomingMessage, client: Duplex) => {
    sockets.add(client)
    client.once('close', () => sockets.delete(client))
    void tunnel(incoming.url ?? '', client, open, count)
  })
  server.listen(options.socketPath)
  await new Promise((resolve, reject) => server.once('listening', resolve).once('error', reject))

  return {
    verdict: () => verdict,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function connectTo(options: ProxyOptions, target: HostPort): Promise<Socket> {
  if (isMirror(options, target)) return await dial(options.mirror.address)
  if (options.upstreamProxy) return await dialThroughProxy(options.upstreamProxy, target)
  return await dialPublic(target)
}

function isMirror<T extends ProxyOptions>(
  options: T,
  target: HostPort,
): options is T & { mirror: NonNullable<T['mirror']> } {
  const { mirror } = options
  return mirror?.name === target.host && (mirror.port === null || mirror.port === target.port)
}

async function tunnel(
  authority: string,
  client: Duplex,
  open: (target: HostPort) => Promise<Socket>,
  count: (stream: NodeJS.ReadableStream) => void,
): Promise<void> {
  client.on('error', () => client.destroy())
  try {
    const server = await open(parseAuthority(authority))
    server.on('error', () => client.destroy()).on('close', () => client.destroy())
    client.on('close', () => server.destroy())
    client.write('HTTP/1.1 200 Connection established\r\n\r\n')
    count(server)
    server.pipe(client)
    client.pipe(server)
  } catch {
    client.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n')
  }
}

/** Plain HTTP, for the mirror only: to anywhere else it would be a downgrade. */
async function forward(
  options: ProxyOptions,
  incoming: IncomingMessage,
  answer: ServerResponse,
  count: (stream: NodeJS.ReadableStream) => void,
  blame: (what: ProxyVerdict) => void,
): Promise<void> {
  const url = URL.parse(incoming.url ?? '')
  const target = { host: url?.hostname ?? '', port: Number(url?.port || 80) }
  if (!url || url.protocol !== 'http:' || !isMirror(options, target)) {
    blame('refused')
    answer.writeHead(403).end()
    return
  }
  const outgoing = request({
    ...options.mirror.address,
    method: incoming.method ?? 'GET',
    path: url.pathname + url.search,
    headers: incoming.headers,
    agent: false,
    timeout: options.stallMs,
  })
  outgoing.on('timeout', () => {
    blame('stalled')
    outgoing.destroy()
  })
  outgoing.on('error', () => {
    blame('unreachable')
    if (answer.headersSent) answer.destroy()
    else answer.writeHead(502).end()
  })
  outgoing.on('response', (response) => {
    count(response)
    response.on('error', () => answer.destroy())
    answer.on('close', () => outgoing.destroy())
    answer.writeHead(response.statusCode ?? 502, response.headers)
    response.pipe(answer)
  })
  incoming.pipe(outgoing)
}

function parseAuthority(authority: string): HostPort {
  const match = /^(.+):(\d{1,5})$/.exec(authority)
  if (!match) throw new AddressRefused(authority)
  return { host: (match[1] ?? '').replace(/^\[|\]$/g, ''), port: Number(match[2]) }
}
