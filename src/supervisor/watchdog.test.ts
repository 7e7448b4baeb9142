import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createWatchdog } from './watchdog.ts'

/** A watchdog and how often it has barked. */
function watchdog(limitMs: number) {
  const heard = { silences: 0 }
  const dog = createWatchdog(limitMs, () => {
    heard.silences += 1
  })
  return { dog, heard }
}

it('silence is noticed once, and not before its limit', async () => {
  const { dog, heard } = watchdog(60)
  for (let reports = 0; reports < 5; reports++) {
    await delay(20)
    dog.reset()
  }
  expect(heard.silences).toBe(0)
  await expect.poll(() => heard.silences, { timeout: 5_000 }).toBe(1)
})

it('nobody is watched any more after the watch was ended', async () => {
  const { dog, heard } = watchdog(10)
  dog.limit(null)
  dog.reset()
  await delay(1_200)
  expect(heard.silences).toBe(0)
})

it('what was said while the watching process stood still is no silence', async () => {
  const { dog, heard } = watchdog(100)
  const server = createServer((socket) => socket.on('data', () => dog.limit(null))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  const speaker = connect(address.port)
  await once(speaker, 'connect')
  dog.reset()
  // After this the event loop comes to timers that are due first, and then to what there is to read.
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
