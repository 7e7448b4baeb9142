import { describe, expect, it } from 'vitest'
import { createFailpoints, noFailpoints, type Fault } from './failpoints.ts'
import { type Journal, runSaga, type Saga, type Step, StepFailed, undoSaga } from './saga.ts'

type Trace = { done: string[] }
const step = (
  name: string,
  options: { fails?: boolean; undoFails?: boolean; checkpoint?: true } = {},
): Step<Trace> => ({
  name,
  ...(options.checkpoint && { checkpoint: true }),
  run: async (trace) => {
    trace.done.push(name)
    if (options.fails) throw new Error(`${name} broke`)
  },
  undo: async (trace) => {
    trace.done.push(`undo ${name}`)
    if (options.undoFails) throw new Error(`undo of ${name} broke`)
  },
})
const sagaOf = (...steps: Step<Trace>[]): Saga<Trace> => ({ name: 'saga', steps })
const nothingDone: Journal = { done: [], save: async () => {} }

async function failure(saga: Saga<Trace>, trace: Trace, journal = nothingDone): Promise<StepFailed<Trace>> {
  try {
    await runSaga(saga, trace, { journal, failpoints: noFailpoints })
  } catch (failed) {
    if (failed instanceof StepFailed) return failed as StepFailed<Trace>
    throw failed
  }
  throw new Error('the saga did not fail')
}

describe('a saga', () => {
  it('runs its steps in order', async () => {
    const trace = { done: [] }
    await runSaga(sagaOf(step('a'), step('b')), trace, { journal: nothingDone, failpoints: noFailpoints })
    expect(trace.done).toEqual(['a', 'b'])
  })

  it('stops at a failed step and undoes all attempted steps in reverse, even if an undo fails', async () => {
    const trace: Trace = { done: [] }
    const saga = sagaOf(step('a'), step('b', { undoFails: true }), step('c', { fails: true }), step('d'))
    const failed = await failure(saga, trace)
    expect(failed.step).toBe('c')
    expect(failed.cause).toMatchObject({ message: 'c broke' })
    expect(trace.done).toEqual(['a', 'b', 'c'])
    const problems = await undoSaga(saga, trace, { attempted: failed.attempted, failpoints: noFailpoints })
    expect(trace.done.slice(3)).toEqual(['undo c', 'undo b', 'undo a'])
    expect(problems).toMatchObject([{ message: 'undo of b broke' }])
  })

  it('saves its progress at a checkpoint and continues after it in the next run', async () => {
    const saved: string[][] = []
    const save = async (done: string[]) => void saved.push(done)
    const saga = sagaOf(step('a'), step('b', { checkpoint: true }), step('c', { fails: true }))
    const trace: Trace = { done: [] }
    await failure(saga, trace, { done: [], save })
    expect(saved).toEqual([['a', 'b']])
    const again: Trace = { done: [] }
    const failed = await failure(saga, again, { done: ['a', 'b'], save })
    expect(again.done).toEqual(['c'])
    // Steps run by an earlier process are undone as well.
    expect(failed.attempted.map(({ name }) => name)).toEqual(['c', 'b', 'a'])
  })

  it('fails at a step whose progress cannot be saved', async () => {
    const save = async () => {
      throw new Error('not wanted any more')
    }
    const failed = await failure(
      sagaOf(step('a', { checkpoint: true }), step('b')),
      { done: [] },
      { done: [], save },
    )
    expect(failed).toMatchObject({ step: 'a', cause: { message: 'not wanted any more' } })
  })

  it('has failpoints before, after and around each step', async () => {
    const met: Record<string, string[]> = {}
    for (const place of ['saga.b.before', 'saga.b.after', 'saga.b'] as const) {
      const wanted = new Map<string, Fault>([[place, place === 'saga.b' ? 'twice' : 'error']])
      const take = (name: string) => wanted.get(name) ?? null
      const failpoints = createFailpoints(take, () => Promise.reject(new Error('crash')))
      const trace = { done: [] }
      await runSaga(sagaOf(step('a'), step('b'), step('c')), trace, {
        journal: nothingDone,
        failpoints,
      }).catch(() => {})
      met[place] = trace.done
    }
    expect(met).toEqual({
      'saga.b.before': ['a'],
      'saga.b.after': ['a', 'b'],
      'saga.b': ['a', 'b', 'b', 'c'],
    })
  })
})
