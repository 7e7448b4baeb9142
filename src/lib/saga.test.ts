import { expect, it } from 'vitest'
import { runSteps, type Step, StepFailed, undoSteps } from './saga.ts'

type Trace = { done: string[] }
const step = (name: string, options: { fails?: boolean; undoFails?: boolean } = {}): Step<Trace> => ({
  name,
  run: async (trace) => {
    trace.done.push(name)
    if (options.fails) throw new Error(`${name} broke`)
  },
  undo: async (trace) => {
    trace.done.push(`undo ${name}`)
    if (options.undoFails) throw new Error(`undo of ${name} broke`)
  },
})

it('steps run in order', async () => {
  const trace = { done: [] }
  await runSteps([step('a'), step('b')], trace)
  expect(trace.done).toEqual(['a', 'b'])
})

it('a failing step ends the sequence; it and those before it are undone, last first, whatever fails meanwhile', async () => {
  const trace = { done: [] }
  const failed: unknown = await runSteps(
    [step('a'), step('b', { undoFails: true }), step('c', { fails: true }), step('d')],
    trace,
  ).catch((error: unknown) => error)
  if (!(failed instanceof StepFailed)) throw failed
  expect(failed.step).toBe('c')
  expect(failed.cause).toMatchObject({ message: 'c broke' })
  expect(trace.done).toEqual(['a', 'b', 'c'])
  const problems = await undoSteps(failed.reached, trace)
  expect(trace.done.slice(3)).toEqual(['undo c', 'undo b', 'undo a'])
  expect(problems).toMatchObject([{ message: 'undo of b broke' }])
})
