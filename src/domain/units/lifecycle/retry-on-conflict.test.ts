import { expect, it } from 'vitest'
import { retryOnConflict } from './retry-on-conflict.ts'

/** Meets so many conflicts, and then succeeds. */
function meeting(conflicts: number) {
  let attempts = 0
  const attempt = async () => {
    attempts += 1
    return attempts > conflicts ? `attempt ${attempts}` : null
  }
  return { attempt, attempts: () => attempts }
}

it('a conflict is met by another attempt', async () => {
  expect(await retryOnConflict(meeting(4).attempt)).toBe('attempt 5')
})

it('five conflicts in a row are given up on', async () => {
  const { attempt, attempts } = meeting(Infinity)
  expect(await retryOnConflict(attempt)).toBeNull()
  expect(attempts()).toBe(5)
})

it('a failure is no conflict', async () => {
  const failing = retryOnConflict(async () => {
    throw new Error('refused')
  })
  await expect(failing).rejects.toThrow('refused')
})
