import { expect, test } from 'vitest'
import { createTrailingFlight } from './trailing-flight.ts'

test('a caller never gets the result of a run that started before its call', async () => {
  const flight = createTrailingFlight<number>()
  let written = 1
  const gate = Promise.withResolvers<void>()
  const first = flight.run('unit', async () => {
    const read = written
    await gate.promise
    return read
  })
  written = 2
  const second = flight.run('unit', async () => written)
  gate.resolve()
  expect(await first).toBe(1)
  expect(await second).toBe(2)
})

test('a thousand concurrent calls cause two runs', async () => {
  const flight = createTrailingFlight<number>()
  let runs = 0
  const work = async () => {
    runs += 1
    await new Promise(setImmediate)
    return runs
  }
  const answers = await Promise.all(Array.from({ length: 1000 }, () => flight.run('unit', work)))
  expect(runs).toBe(2)
  expect(answers.slice(1).every((answer) => answer === 2)).toBe(true)
  expect(await flight.run('unit', work)).toBe(3)
})

test('a failed run rejects its own callers only, and keys are independent', async () => {
  const flight = createTrailingFlight<string>()
  const failing = flight.run('unit', async () => await Promise.reject(new Error('away')))
  const next = flight.run('unit', async () => 'well')
  const other = flight.run('other', async () => 'apart')
  await expect(failing).rejects.toThrow('away')
  expect(await next).toBe('well')
  expect(await other).toBe('apart')
})
