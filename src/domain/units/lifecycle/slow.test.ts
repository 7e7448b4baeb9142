import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../../../test/support/domain.ts'
import { lineSink } from '../../../../test/support/logged.ts'
import { stopUnit } from '../stop.ts'

let domain: TestDomain
beforeAll(async () => {
  domain = await createTestDomain()
})
afterAll(async () => await domain.close())

function listening() {
  const lines: string[] = []
  const app = { ...domain.app, log: pino(lineSink(lines)) }
  const slow = () =>
    lines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ msg }) => msg === 'unit was slow to run')
  return { app, slow }
}

/** Until the engine is asked, then for longer than an operation should take. */
async function letTimePass(operation: string): Promise<void> {
  while (domain.engine.calls.at(-1)?.operation !== operation) await new Promise((done) => setTimeout(done, 1))
  domain.clock.advance(30_000)
}

it('a create that was slow says in one line how long each of its steps took', async () => {
  const { app, slow } = listening()
  const caller = await domain.makeCaller()
  const release = domain.engine.hang('start')
  const making = makeUnit(app, caller)
  await letTimePass('start')
  release()
  const { id } = await making
  expect(slow()).toEqual([
    expect.objectContaining({ level: 40, unitId: id, operation: 'create', stepsMs: expect.anything() }),
  ])
  const { totalMs, stepsMs } = slow()[0] as { totalMs: number; stepsMs: Record<string, number> }
  expect(Object.keys(stepsMs).toSorted()).toEqual(
    [
      'create.image',
      'create.machine',
      'create.order',
      'start.admitted',
      'create.start',
      'create.ready',
    ].toSorted(),
  )
  expect(stepsMs['start.admitted']).toBeGreaterThanOrEqual(30_000)
  expect(totalMs).toBeGreaterThanOrEqual(stepsMs['create.start'] ?? Infinity)
})

it('a stop that was slow is the matter of the process that was stopped, and is not logged', async () => {
  const { app, slow } = listening()
  const caller = await domain.makeCaller()
  const { id } = await makeUnit(app, caller)
  const release = domain.engine.hang('stop')
  const stopping = stopUnit(app, caller, id)
  await letTimePass('stop')
  release()
  await stopping
  expect(slow()).toEqual([])
})
