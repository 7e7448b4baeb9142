import { expect, it } from 'vitest'
import { pipeline } from './pipeline.ts'

it('each step gets the results of the steps before it', async () => {
  const sum = pipeline<{ a: number }>()
    .step('double', ({ a }) => ({ b: 2 * a }))
    .step('add', async ({ a, b }) => ({ sum: a + b }))
  const work: { a: number; sum?: number } = { a: 2 }
  await sum.run(work)
  expect(work.sum).toBe(6)
  expect(sum.names).toEqual(['double', 'add'])
})

it('no step runs after a failed one, and earlier results are kept', async () => {
  const ran: string[] = []
  const steps = pipeline<object>()
    .step('find', () => ({ found: 1 }))
    .step('fail', (): void => {
      throw new Error('no')
    })
    .step('go on', () => void ran.push('went on'))
  const work: { found?: number } = {}
  await expect(steps.run(work)).rejects.toThrow('no')
  expect({ ...work, ran }).toEqual({ found: 1, ran: [] })
})

it('adding a step returns a new pipeline and leaves the old one unchanged', () => {
  const short = pipeline<object>().step('one', () => {})
  short.step('two', () => {})
  expect(short.names).toEqual(['one'])
})
