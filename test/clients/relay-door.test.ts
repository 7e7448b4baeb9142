// The door between a vendor's forwarder and its unit: what passes, and what is told of it. A server of WebSockets is the unit.

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { codex } from '../../packages/agents/src/codex.ts'
import type { RelayCall } from '../../packages/agents/src/relay.ts'
import { type Door, openDoor } from '../../packages/agents/src/relay-door.ts'

let unit: WebSocketServer
let door: Door
let told: RelayCall[]

beforeEach(async () => {
  unit = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: true })
  unit.on('connection', (socket) =>
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })),
  )
  await once(unit, 'listening')
  told = []
  const url = `ws://127.0.0.1:${(unit.address() as AddressInfo).port}/private`
  door = await openDoor(url, { ...codex, onCall: (call) => void told.push(call) })
})
afterEach(async () => {
  await door.close()
  for (const client of unit.clients) client.terminate()
  unit.close()
})

async function connected(): Promise<WebSocket> {
  const socket = new WebSocket(door.url)
  await once(socket, 'open')
  return socket
}

async function echoed(socket: WebSocket, text: string): Promise<string> {
  const heard = once(socket, 'message') as Promise<[Buffer]>
  socket.send(text)
  return String((await heard)[0])
}

it('passes messages of every length as they are, and tells what is called and nothing else', async () => {
  const socket = await connected()
  for (const [method, length] of [
    ['process/start', 1],
    ['fs/write', 70_000],
    ['process/read', 300],
  ] as const) {
    const text = JSON.stringify({ id: 1, method, params: { secret: 'x'.repeat(length), method: 'not/this' } })
    expect(await echoed(socket, text)).toBe(text)
  }
  socket.ping()
  expect(await echoed(socket, '{"id":1,"result":{"method":"not/this"}}')).toContain('result')
  expect(told).toEqual([{ method: 'process/start' }, { method: 'fs/write' }, { method: 'process/read' }])
  socket.close()
})

it('understands messages in frames and pieces of any size', async () => {
  const socket = await connected()
  const heard = once(socket, 'message')
  socket.send('{"jsonrpc":"2.0","method":"initialized"', { fin: false })
  socket.send(',"params":{}}', { fin: true })
  await heard
  expect(told).toEqual([{ method: 'initialized' }])
  const start = { id: 11, method: 'process/start', params: { argv: ['sh', '-c', 'y'.repeat(100)] } }
  const bytes = Buffer.from(JSON.stringify(start))
  for (let at = 0; at < bytes.length; at += 7)
    socket.send(bytes.subarray(at, at + 7), { fin: at + 7 >= bytes.length })
  await expect.poll(() => told).toContainEqual({ method: 'process/start', cmd: start.params.argv })
  socket.close()
})

it('is closed to programs that do not know its path', async () => {
  const stranger = new WebSocket(new URL('/', door.url))
  const [error] = (await once(stranger, 'error')) as [Error]
  expect(error.message).toContain('404')
})

it('closes with the unit, and says that there is none', async () => {
  const socket = await connected()
  const closed = once(socket, 'close')
  for (const client of unit.clients) client.terminate()
  await closed
  unit.close()
  const late = new WebSocket(door.url)
  await expect(once(late, 'close')).rejects.toThrow('hang up')
})
