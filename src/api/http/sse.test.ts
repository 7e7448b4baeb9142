// Server-Sent Events to slow and disconnected clients (reliability Z7).

import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { systemClock } from '../../lib/clock.ts'
import { eventStream, sendEvents, type StreamEvent } from './sse.ts'

/** Starts a server that streams, and keeps how the stream ended. */
async function serve(produce: (send: (event: StreamEvent) => Promise<void>) => Promise<void>) {
  const ended = Promise.withResolvers<unknown>()
  const server = createServer((_request, response) => {
    const gone = new AbortController()
    response.once('close', () => gone.abort(new Error('the caller went away')))
    const needs = { clock: systemClock, signal: gone.signal, requestId: 'req_1' }
    sendEvents(response, eventStream(produce), needs).then(ended.resolve, ended.resolve)
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { port, ended: ended.promise, close: () => server.close() }
}

test('a client that does not read pauses the producer, and gets every event once it reads', async () => {
  const total = 400
  let sent = 0
  const { port, ended, close } = await serve(async (send) => {
    for (; sent < total; sent++) await send({ event: 'line', data: 'x'.repeat(64 * 1024), id: String(sent) })
  })
  const socket = connect({ port, host: '127.0.0.1' })
  socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  await expect.poll(() => sent).toBeGreaterThan(0)
  await delay(200)
  const held = sent
  await delay(200)
  expect(sent).toBe(held)
  expect(held).toBeLessThan(total)

  let last = ''
  socket.on('data', (chunk: Buffer) => (last = (last + chunk.toString('latin1')).slice(-200_000)))
  expect(await ended).toBeUndefined()
  await expect.poll(() => last).toContain(`id: ${total - 1}\n`)
  socket.destroy()
  close()
})

test('a client that disconnects releases a producer that waits for it', async () => {
  const { port, ended, close } = await serve(async (send) => {
    for (;;) await send({ event: 'line', data: 'x'.repeat(64 * 1024) })
  })
  const socket = connect({ port, host: '127.0.0.1' })
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  await delay(200)
  socket.destroy()
  expect(await Promise.race([ended, delay(2000, 'still waiting')])).not.toBe('still waiting')
  close()
})

test('an event id cannot break out of its frame', async () => {
  const { port, close } = await serve(async (send) => {
    await send({ event: 'line', data: 'a\n\nb', id: '1\r\ndata: forged\0' })
  })
  const text = await (await fetch(`http://127.0.0.1:${port}/`)).text()
  expect(text).toBe('event: line\nid: 1data: forged\ndata: "a\\n\\nb"\n\n')
  close()
})
