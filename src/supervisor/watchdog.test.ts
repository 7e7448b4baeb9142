import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createWatchdog } from './watchdog.ts'

/** Returns a watchdog and the number of silences it has reported. */
function watchdog(limitMs: number) {
  const heard = { silences: 0 }
  const dog = createWatchdog(limitMs, () => {
    heard.silences += 1
  })
  return { dog, heard }
}

it('the watchdog reports silence once, and only after its limit', async () => {
  const { dog, heard } = watchdog(60)
  for (let reports = 0; reports < 5; reports++) {
    await delay(20)
    dog.reset()
  }
  expect(heard.silences).toBe(0)
  await expect.poll(() => heard.silences, { timeout: 5_000 }).toBe(1)
})

it('the watchdog reports nothing once its limit is null', async () => {
  const { dog, heard } = watchdog(10)
  dog.limit(null)
  dog.reset()
  await delay(1_200)
  expect(heard.silences).toBe(0)
})

it('the watchdog does not report silence if its own event loop was blocked', async () => {
  const { dog, heard } = watchdog(100)
  const server = createServer((socket) => socket.on('data', () => dog.limit(null))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  const speaker = connect(address.port)
  await once(speaker, 'connect')
  dog.reset()
  // After this the event loop runs due timers first and then reads from sockets.
  await new Promise((resolve) => setImmediate(resolve))
  speaker.write('alive')
  standStill(300)
  await delay(1_200)
  expect(heard.silences).toBe(0)
  speaker.destroy()
  server.close()
})

function standStill(ms: number): void {
  const endMs = performance.now() + ms
  for (;;) if (performance.now() > endMs) return
}
