import { expect, it } from 'vitest'
import { createRefusalPace, PROMPT_REFUSALS } from './refusal-pace.ts'

const { signal } = new AbortController()

function pacedBy(clock: { ms: number }): { pauses: () => number; refuse: (teamId: string) => Promise<void> } {
  let pauses = 0
  const pace = createRefusalPace(
    async () => void (pauses += 1),
    () => clock.ms,
  )
  return { pauses: () => pauses, refuse: async (teamId) => await pace.wait(teamId, signal) }
}

it('answers the first refusals of a team at once, and those beyond them in the same second after a pause', async () => {
  const clock = { ms: 0 }
  const { pauses, refuse } = pacedBy(clock)
  for (let refused = 0; refused < PROMPT_REFUSALS; refused += 1) await refuse('busy')
  expect(pauses()).toBe(0)
  await refuse('busy')
  await refuse('busy')
  expect(pauses()).toBe(2)
  await refuse('other')
  expect(pauses()).toBe(2)
  clock.ms = 1001
  await refuse('busy')
  expect(pauses()).toBe(2)
})

it('ends the pause when the caller goes away', async () => {
  const pace = createRefusalPace()
  const gone = new AbortController()
  for (let refused = 0; refused < PROMPT_REFUSALS; refused += 1) await pace.wait('busy', gone.signal)
  gone.abort()
  await pace.wait('busy', gone.signal)
})
