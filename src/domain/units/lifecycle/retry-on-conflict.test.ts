import { expect, it } from 'vitest'
import { retryOnConflict } from './retry-on-conflict.ts'

/** Meets this many conflicts, and then succeeds. */
function meeting(conflicts: number) {
  let attempts = 0
  const attempt = async () => {
    attempts += 1
    return attempts > conflicts ? `attempt ${attempts}` : null
  }
  return { attempt, attempts: () => attempts }
}

it('retryOnConflict tries again after a conflict', async () => {
  expect(await retryOnConflict(meeting(4).attempt)).toBe('attempt 5')
})

it('retryOnConflict gives up after five conflicts', async () => {
  const { attempt, attempts } = meeting(Infinity)
  expect(await retryOnConflict(attempt)).toBeNull()
  expect(attempts()).toBe(5)
})

it('retryOnConflict does not retry after an error', async () => {
  const failing = retryOnConflict(async () => {
    throw new Error('refused')
  })
  await expect(failing).rejects.toThrow('refused')
})
