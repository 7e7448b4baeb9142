// A client that only sends pings does not keep its unit awake: the unit falls asleep after its window while the connection
// stays open. A client that sends messages does keep it awake.

import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { eventually } from '../support/berth.ts'
import { publish } from '../support/published.ts'
import { useBerth } from '../support/use-berth.ts'

/** Accepts any upgrade and never sends a frame. */
const SERVER = `
require('node:http').createServer((_, answer) => answer.end('here')).on('upgrade', (asked, socket) => {
  const accept = require('node:crypto').createHash('sha1')
    .update(asked.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64')
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nupgrade: websocket\\r\\nconnection: Upgrade\\r\\n' +
    'sec-websocket-accept: ' + accept + '\\r\\n\\r\\n')
  socket.on('error', () => {}).resume()
}).listen(80)`
const EVERY_MS = 500
/** Twice the sleep window. */
const WITHIN_MS = 120_000
/** With a mask of zeros. */
const PING = Buffer.from([0x89, 0x80, 0, 0, 0, 0])
const TEXT = Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69])

const berth = useBerth({ BERTH_ISOLATION: 'runc' })
const open: { socket: TLSSocket; timer: NodeJS.Timeout }[] = []
let ca: string

beforeAll(async () => {
  ca = await readFile(berth.credentials.caFile ?? '', 'utf8')
})
afterAll(() => {
  for (const { socket, timer } of open) {
    clearInterval(timer)
    socket.destroy()
  }
})

/** Publishes a unit and starts a client that sends the frame repeatedly. */
async function unitWithClient(name: string, frame: Buffer): Promise<{ unit: Unit; socket: TLSSocket }> {
  const spec = { name, image: 'berth.local/node:24', cmd: ['node', '-e', SERVER], ports: [80], sleep: '1m' }
  const { unit, url } = await publish(berth, spec, { port: 80, protocol: 'http', mode: 'public' })
  const { hostname, port } = new URL(url)
  const socket = connect({ host: '127.0.0.1', port: Number(port), servername: hostname, ca })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  const upgrade = ['GET / HTTP/1.1', `host: ${hostname}`, 'connection: Upgrade', 'upgrade: websocket']
  const key = ['sec-websocket-version: 13', 'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==']
  socket.write(`${[...upgrade, ...key].join('\r\n')}\r\n\r\n`)
  const [said] = (await once(socket, 'data')) as [Buffer]
  expect(said.toString()).toContain('101 ')
  socket.resume()
  open.push({ socket, timer: setInterval(() => socket.writable && socket.write(frame), EVERY_MS) })
  return { unit, socket }
}

const stateOf = async ({ id }: Unit) => (await berth.call<Unit>('GET', `/v1/units/${id}`)).body.state

it('a unit whose WebSocket client only pings falls asleep, and one whose client sends messages does not', async () => {
  const talked = await unitWithClient('talked-to', TEXT)
  const pinged = await unitWithClient('pinged', PING)
  await eventually(async () => expect(await stateOf(pinged.unit)).toBe('sleeping'), WITHIN_MS)
  expect(await stateOf(talked.unit)).toBe('running')
  for (const { socket } of [pinged, talked]) expect(socket.readyState).toBe('open')
}, 300_000)
