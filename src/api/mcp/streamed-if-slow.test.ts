import { expect, it } from 'vitest'
import { createTestClock } from '../../../test/support/clock.ts'
import { freezeSleeps } from '../../../test/support/frozen-sleeps.ts'
import { readText, type WebAnswer } from './bridge.ts'
import { SILENCE_MS, streamedIfSlow } from './streamed-if-slow.ts'

const refusal: WebAnswer = {
  status: 400,
  headers: { 'content-type': 'application/json' },
  body: [Buffer.from('{"error":{"code":-32021}}')],
}

function slowly() {
  const clock = createTestClock()
  const time = freezeSleeps(clock)
  const { promise, resolve, reject } = Promise.withResolvers<WebAnswer>()
  return { time, answer: streamedIfSlow(clock, promise), resolve, reject }
}

it('a fast answer keeps its status', async () => {
  const { time, answer, resolve } = slowly()
  await time.pass(SILENCE_MS - 1)
  resolve(refusal)
  expect(await answer).toBe(refusal)
})

it('a slow answer becomes a stream of comments that ends with the answer as an event', async () => {
  const { time, answer, resolve } = slowly()
  await time.pass(SILENCE_MS)
  const { status, headers, body } = await answer
  expect([status, headers]).toEqual([200, { 'content-type': 'text/event-stream' }])
  const read = readText({ status, headers, body })
  await new Promise((done) => void setImmediate(done))
  await time.pass(SILENCE_MS)
  resolve(refusal)
  expect((await read).text).toBe(
    `${': keepalive\n\n'.repeat(2)}event: message\ndata: {"error":{"code":-32021}}\n\n`,
  )
})

it('a slow answer that is an event stream itself is passed on after the comments', async () => {
  const { time, answer, resolve } = slowly()
  await time.pass(SILENCE_MS)
  const headers = { 'content-type': 'text/event-stream' }
  resolve({ status: 200, headers, body: [Buffer.from('data: {}\n\n')] })
  expect((await readText(await answer)).text).toBe(': keepalive\n\ndata: {}\n\n')
})

it('a failure of the answer is passed on, whether it comes early or late', async () => {
  const soon = slowly()
  soon.reject(new Error('gone'))
  await expect(soon.answer).rejects.toThrow('gone')
  const late = slowly()
  await late.time.pass(SILENCE_MS)
  const { body } = await late.answer
  late.reject(new Error('gone'))
  await expect(readText({ status: 200, headers: {}, body })).rejects.toThrow('gone')
})
