// What the gateway costs a visit: requests a second, latency and processor time beside the same requests sent to the
// unit directly and through Debian's nginx and Caddy; memory of idle WebSockets; the first byte of a unit that slept.

import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { run, runOrThrow } from '../src/lib/process.ts'
import type { Call } from './berth.ts'
import { type Figures, timed } from './figures.ts'
import { startCaddy, startNginx } from './proxies.ts'
import { type Berth, cpuSecondsOf, pidOfRole, residentKb } from './service.ts'

const SECONDS = 6
const CONNECTIONS = [1, 32]
const WEB_SOCKETS = 2000

type Target = { name: string; url: string; host: string; cpuSeconds: () => number }

/** Lines of a table: who, and what `wrk` said of it. */
export async function measureGateway(berth: Berth, call: Call): Promise<string> {
  const { id, url } = await publish(call, { image: 'berth.local/nginx:1.22', cmd: ['nginx'], ports: [80] })
  const { stdout } = (await call('POST', `/v1/units/${id}/exec`, { cmd: ['hostname', '-i'] })) as {
    stdout: string
  }
  const origin = `${stdout.trim()}:80`
  const { host } = new URL(url)
  const gateway = pidOfRole(berth.pid, 'gateway')
  const peers = await Promise.all([startNginx(origin), startCaddy(origin)])
  const targets: Target[] = [
    { name: 'direct', url: `http://${origin}/`, host, cpuSeconds: () => 0 },
    { name: 'Berth', url: `http://${berth.gatewayHttp}/`, host, cpuSeconds: () => cpuSecondsOf(gateway) },
    {
      name: 'Berth, TLS',
      url: `https://${berth.gatewayTls}/`,
      host,
      cpuSeconds: () => cpuSecondsOf(gateway),
    },
    ...peers.flatMap((peer) =>
      peer ? peer.urls.map(({ name, url: at }) => ({ ...peer, name, url: at, host: 'localhost' })) : [],
    ),
  ]
  try {
    const rows = []
    for (const target of targets) rows.push(await measureTarget(target))
    const head = [
      'requests',
      ...CONNECTIONS.flatMap((each) => [`p50 at ${each}`, `requests/s at ${each}`]),
      'CPU per request',
    ]
    return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
  } finally {
    for (const peer of peers) await peer?.stop()
    await call('DELETE', `/v1/units/${id}`)
  }
}

async function measureTarget({ name, url, host, cpuSeconds }: Target): Promise<string[]> {
  const cells: string[] = []
  let cpuUs = 0
  for (const connections of CONNECTIONS) {
    const before = cpuSeconds()
    const args = [`-t1`, `-c${connections}`, `-d${SECONDS}s`, '--latency', '-H', `Host: ${host}`, url]
    const said = await runOrThrow('wrk', args, { timeoutMs: 60_000 })
    const [, count = '0'] = /(\d+) requests in/.exec(said) ?? []
    const [, p50 = '?'] = /^\s+50%\s+(\S+)/m.exec(said) ?? []
    const [, rate = '?'] = /Requests\/sec:\s+(\d+)/.exec(said) ?? []
    const failed = /Non-2xx or 3xx responses: (\d+)/.exec(said)?.[1]
    cpuUs = ((cpuSeconds() - before) * 1e6) / Number(count)
    cells.push(p50, failed === undefined ? rate : `${rate} (${failed} failed)`)
  }
  return [name, ...cells, cpuUs === 0 ? '-' : `${cpuUs.toFixed(0)} µs`]
}

/** Resident memory that one idle WebSocket adds to the gateway, in plain and by TLS. */
export async function measureWebSockets(berth: Berth, call: Call): Promise<string> {
  const script = `require('node:http').createServer().on('upgrade', (request, socket) => {
    const accept = require('node:crypto').createHash('sha1')
      .update(request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64')
    socket.write('HTTP/1.1 101 Switching Protocols\\r\\nupgrade: websocket\\r\\nconnection: upgrade\\r\\n' +
      'sec-websocket-accept: ' + accept + '\\r\\n\\r\\n')
  }).listen(8080)`
  const { id, url } = await publish(call, {
    image: 'berth.local/node:18',
    cmd: ['node', '--eval', script],
    ports: [8080],
  })
  const { hostname, host } = new URL(url)
  const ca = await readFile(berth.caFile, 'utf8')
  const gateway = pidOfRole(berth.pid, 'gateway')
  const [plainHost = '', plainPort] = berth.gatewayHttp.split(':')
  const [tlsHost = '', tlsPort] = berth.gatewayTls.split(':')
  const ways = {
    plain: () => connect(Number(plainPort), plainHost),
    TLS: () => connectTls({ host: tlsHost, port: Number(tlsPort), servername: hostname, ca }),
  }
  const said: string[] = []
  for (const [name, open] of Object.entries(ways)) {
    const before = residentKb(gateway)
    const sockets: Socket[] = []
    for (let opened = 0; opened < WEB_SOCKETS; opened += 50) {
      sockets.push(...(await Promise.all(Array.from({ length: 50 }, () => upgrade(open(), host)))))
    }
    await delay(5000)
    said.push(`${((residentKb(gateway) - before) / WEB_SOCKETS).toFixed(1)} kB (${name})`)
    for (const socket of sockets) socket.destroy()
    await delay(3000)
  }
  await call('DELETE', `/v1/units/${id}`)
  return `${WEB_SOCKETS} idle WebSockets: ${said.join(', ')} of the gateway's memory each`
}

function upgrade(socket: Socket, host: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('data', (chunk: Buffer) => {
      if (chunk.toString('latin1').startsWith('HTTP/1.1 101')) resolve(socket)
      else reject(new Error(chunk.toString('latin1').slice(0, 200)))
    })
    const key = 'dGhlIHNhbXBsZSBub25jZQ=='
    socket.write(
      `GET / HTTP/1.1\r\nhost: ${host}\r\nupgrade: websocket\r\nconnection: upgrade\r\n` +
        `sec-websocket-version: 13\r\nsec-websocket-key: ${key}\r\n\r\n`,
    )
  })
}

/** Until the first byte of an answer, over a connection that is open already: running and frozen in turns. */
export async function measureFirstByte(berth: Berth, call: Call, rounds: number): Promise<Figures> {
  const { id, url } = await publish(call, { image: 'berth.local/nginx:1.22', cmd: ['nginx'], ports: [80] })
  const { host } = new URL(url)
  const [hostname, port] = berth.gatewayHttp.split(':')
  // A bare socket: what an HTTP client of Node's makes of the first byte is not what is asked about.
  const socket = connect(Number(port), hostname)
  socket.setNoDelay(true)
  const visit = async () => {
    const answered = once(socket, 'data')
    socket.write(`GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`)
    const said = String(await answered)
    if (!said.startsWith('HTTP/1.1 200')) throw new Error(`a visit was answered with ${said.slice(0, 100)}`)
  }
  const figures = { 'visit, running': [] as number[], 'visit, frozen': [] as number[] }
  for (let round = 0; round < rounds; round += 1) {
    await timed(figures['visit, running'], visit)
    // Longer than a visit counts as under way after its end.
    await delay(200)
    await call('POST', `/v1/units/${id}/sleep`, { sleep: '30m', now: true })
    await timed(figures['visit, frozen'], visit)
    await delay(200)
  }
  socket.destroy()
  await call('DELETE', `/v1/units/${id}`)
  return figures
}

/** A public unit whose server answers. */
export async function publish(
  call: Call,
  spec: { image: string; cmd: string[]; ports: number[] },
): Promise<{ id: string; url: string }> {
  const name = 'bench'
  const body = { spec: { name, size: 'large', ...spec }, expose: 'public' }
  const made = (await call('POST', '/v1/units', body)) as {
    units: { id: string }[]
    outputs: { URL: string }
  }
  await delay(2000)
  return { id: made.units[0]?.id ?? '', url: made.outputs.URL }
}

/** Whether what this benchmark runs beside Berth is there; the sentence where it is not. */
export async function missingTools(): Promise<string | null> {
  const found = await run('sh', ['-c', 'command -v wrk'], { timeoutMs: 5000 })
  return found.exitCode === 0
    ? null
    : 'wrk is not installed here (Debian: wrk): nothing measures the gateway.'
}
