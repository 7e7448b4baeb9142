import { expect, it } from 'vitest'
import { createByteQueue } from './byte-queue.ts'

const openQueue = () => createByteQueue<Buffer>(10, ({ length }) => length)

async function lengthsIn(queue: AsyncIterable<Buffer>): Promise<number[]> {
  const taken: number[] = []
  for await (const item of queue) taken.push(item.length)
  return taken
}

it('a byte queue holds its producer back beyond the limit, and its end releases the producer', async () => {
  const queue = openQueue()
  await queue.push(Buffer.alloc(10))
  let isIn = false
  const more = queue.push(Buffer.alloc(1)).then(() => (isIn = true))
  await new Promise(setImmediate)
  expect([isIn, queue.isFull()]).toEqual([false, true])
  queue.end()
  await more
  expect(await lengthsIn(queue)).toEqual([10, 1])
})

it('a byte queue lets its producer continue once a consumer has taken enough', async () => {
  const queue = openQueue()
  const pushed = queue.push(Buffer.alloc(20))
  for await (const item of queue) {
    expect(item).toHaveLength(20)
    break
  }
  await pushed
  expect(queue.isFull()).toBe(false)
})

it('a byte queue passes items without bytes, and drops what comes after its end', async () => {
  const queue = openQueue()
  await queue.push(Buffer.alloc(0))
  queue.end()
  await queue.push(Buffer.alloc(3))
  expect(await lengthsIn(queue)).toEqual([0])
})
