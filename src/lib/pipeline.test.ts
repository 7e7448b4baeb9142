import { expect, it } from 'vitest'
import { pipeline } from './pipeline.ts'

it('each step is given what those before it have found out', async () => {
  const sum = pipeline<{ a: number }>()
    .step('double', ({ a }) => ({ b: 2 * a }))
    .step('add', async ({ a, b }) => ({ sum: a + b }))
  const work: { a: number; sum?: number } = { a: 2 }
  await sum.run(work)
  expect(work.sum).toBe(6)
  expect(sum.names).toEqual(['double', 'add'])
})

it('no step runs after one that fails, and what was found out until then is kept', async () => {
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

it('a list that is made longer stays as it was for those who have it', () => {
  const short = pipeline<object>().step('one', () => {})
  short.step('two', () => {})
  expect(short.names).toEqual(['one'])
})
