// Crowds at the gateway over TLS with a real unit: two thousand deliberately slow clients (reliability L4), and two thousand
// idle WebSockets next to event streams (L5). `npm test` uses a tenth of the former, which leave before the gateway's times are
// over (with short ones src/gateway/sockets.test.ts lets them end), and a quarter of the latter. Other clients are served all
// the time, and the gateway releases what it held for the crowd.

import { once } from 'node:events'
import { readFile, readdir } from 'node:fs/promises'
import { request } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { connect, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Exposed } from '../../src/contract/endpoint.ts'
import { eventually } from '../support/berth.ts'
import { createUnit } from '../support/berth-units.ts'
import { isDeep } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const EACH = isDeep ? 500 : 50
const WEB_SOCKETS = isDeep ? 2000 : 500
const EVENT_STREAMS = isDeep ? 200 : 50
/** Resident memory of an open, idle TLS connection. A leak that grows with traffic would exceed it by far. */
const MAX_BYTES_EACH = 100 * 1024

/** /large exceeds every buffer on its way; /events stays open; an upgraded connection echoes. */
const server = `
const large = Buffer.alloc(8 * 2 ** 20)
const accept = (key) => require('node:crypto').createHash('sha1')
  .update(key + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64')
const events = new Set()
require('node:http').createServer((asked, answer) => {
  if (asked.url === '/large') return answer.end(large)
  if (asked.url === '/events') {
    events.add(answer)
    answer.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: hello\\n\\n')
    return answer.on('close', () => events.delete(answer))
  }
  if (asked.url === '/tell') for (const each of events) each.write('data: news\\n\\n')
  asked.resume().on('end', () => answer.end(String(events.size)))
}).on('upgrade', (asked, socket) => {
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nupgrade: websocket\\r\\nconnection: Upgrade\\r\\n' +
    'sec-websocket-accept: ' + accept(asked.headers['sec-websocket-key']) + '\\r\\n\\r\\n')
  socket.on('error', () => {}).pipe(socket)
}).listen(80)`

const berth = useBerth({ BERTH_ISOLATION: 'runc' })
let url: URL
let ca: string
let gatewayPid: number
const sockets: TLSSocket[] = []

beforeAll(async () => {
  ca = await readFile(berth.credentials.caFile ?? '', 'utf8')
  const spec = { name: 'crowded', image: 'berth.local/node:24', size: 'medium', ports: [80] }
  const unit = await createUnit(berth, { ...spec, cmd: ['node', '-e', server] })
  const exposed = await berth.call<Exposed>('POST', `/v1/units/${unit.id}/expose`, {
    port: 80,
    mode: 'public',
  })
  url = new URL(exposed.body.url)
  gatewayPid = (await berth.pidOf('gateway')) ?? 0
  await eventually(async () => expect(await get('/')).toBe(200))
})
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
})

function get(path: string): Promise<number> {
  const { hostname, port } = url
  return new Promise((resolve, reject) => {
    const headers = { host: hostname }
    const asked = request(
      { host: '127.0.0.1', port, path, servername: hostname, headers, ca, agent: false },
      (answer) => {
        answer.resume().once('end', () => resolve(answer.statusCode ?? 0))
      },
    )
    asked.on('error', reject).end()
  })
}

async function open(said: string): Promise<TLSSocket> {
  const { hostname, port } = url
  const socket = connect({ host: '127.0.0.1', port: Number(port), servername: hostname, ca })
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  socket.write(said.replace('HOST', hostname))
  return socket
}

async function openMany(count: number, said: string): Promise<TLSSocket[]> {
  const opened: TLSSocket[] = []
  for (let left = count; left > 0; left -= 50) {
    opened.push(...(await Promise.all(Array.from({ length: Math.min(50, left) }, () => open(said)))))
  }
  return opened
}

const openFiles = async () => (await readdir(`/proc/${gatewayPid}/fd`)).length
async function residentBytes(): Promise<number> {
  const status = await readFile(`/proc/${gatewayPid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024
}

describe('a crowd of clients', () => {
  async function openSlow() {
    const ways = {
      'send their headers byte by byte': 'GET / HTTP/1.1\r\nhost: HOST\r\nx-slow: ',
      'send their body byte by byte': 'POST / HTTP/1.1\r\nhost: HOST\r\ncontent-length: 100000\r\n\r\n',
      'do not read their answer': 'GET /large HTTP/1.1\r\nhost: HOST\r\n\r\n',
      'ask once, and keep the connection': 'GET / HTTP/1.1\r\nhost: HOST\r\n\r\n',
    }
    const crowd = await Promise.all(
      Object.values(ways).map(async (said) => ({ said, opened: await openMany(EACH, said) })),
    )
    for (const { said, opened } of crowd) {
      // A client that reads notices its end; the others notice when they send.
      if (!said.includes('/large')) for (const socket of opened) socket.resume()
    }
    return crowd
  }

  it.skipIf(isDeep)(
    'that are deliberately slow blocks no other client, and leaves nothing behind',
    async () => {
      const filesBefore = await openFiles()
      const crowd = await openSlow()
      for (let byte = 0; byte < 10; byte += 1) {
        for (const { said, opened } of crowd)
          if (said.includes('x-slow') || said.includes('content-length'))
            for (const socket of opened) socket.write('x')
        expect(await get('/')).toBe(200)
        await delay(100)
      }
      for (const { opened } of crowd) for (const socket of opened) socket.destroy()
      await expect.poll(openFiles).toBeLessThan(filesBefore + 50)
      expect(await berth.pidOf('gateway')).toBe(gatewayPid)
    },
  )

  it.runIf(isDeep)(
    'that are deliberately slow is disconnected without blocking other clients',
    async () => {
      const filesBefore = await openFiles()
      const crowd = await openSlow()
      const all = crowd.flatMap(({ opened }) => opened)
      for (let second = 0; second < 150 && all.some((socket) => !socket.closed); second += 1) {
        for (const { said, opened } of crowd) {
          const dribbles = said.includes('x-slow') || said.includes('content-length')
          for (const [index, socket] of opened.entries()) {
            if (dribbles && socket.writable) socket.write('x')
            // The end comes after the unread data. Reading it from all sockets at once would block this process.
            if (said.includes('/large') && second === 75 + (index % 40)) socket.resume()
          }
        }
        expect(await get('/')).toBe(200)
        await delay(1000)
      }
      // A client that has not noticed its end is told when it sends something to the closed connection.
      for (const socket of all) if (socket.writable) socket.write('x')
      const left = () =>
        crowd.map(({ said, opened }) => [said.slice(0, 24), opened.filter(({ closed }) => !closed).length])
      await expect.poll(left, { timeout: 5000 }).toEqual(crowd.map(({ said }) => [said.slice(0, 24), 0]))
      await expect.poll(openFiles).toBeLessThan(filesBefore + 50)
      expect(await berth.pidOf('gateway')).toBe(gatewayPid)
    },
    300_000,
  )

  it('that is idle on WebSockets and event streams needs little memory and stays connected', async () => {
    const before = await residentBytes()
    const upgrade =
      'GET /socket HTTP/1.1\r\nhost: HOST\r\nconnection: upgrade\r\nupgrade: websocket\r\n' +
      'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
    const webSockets = await openMany(WEB_SOCKETS, upgrade)
    await Promise.all(webSockets.map((socket) => heard(socket, ' 101 ')))
    const streams = await openMany(EVENT_STREAMS, 'GET /events HTTP/1.1\r\nhost: HOST\r\n\r\n')
    await Promise.all(streams.map((socket) => heard(socket, 'data: hello')))
    await delay(5000)
    const each = ((await residentBytes()) - before) / (WEB_SOCKETS + EVENT_STREAMS)
    expect(each).toBeLessThan(MAX_BYTES_EACH)

    const echoed = webSockets.map((socket, index) => heard(socket, `word ${index}.`))
    for (const [index, socket] of webSockets.entries()) socket.write(`word ${index}.`)
    await Promise.all(echoed)
    const told = streams.map((socket) => heard(socket, 'data: news'))
    expect(await get('/tell')).toBe(200)
    await Promise.all(told)
    for (const socket of [...webSockets, ...streams]) socket.destroy()
    await expect.poll(openFiles).toBeLessThan(200)
  }, 120_000)
})

/** Waits until these words have arrived. */
function heard(socket: TLSSocket, words: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = ''
    const hear = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      if (!text.includes(words)) return
      socket.off('data', hear)
      resolve()
    }
    socket.on('data', hear)
    socket.once('close', () => reject(new Error(`closed before "${words}" was heard`)))
  })
}
