import { expect, it } from 'vitest'
import { createTestClock } from '../../../../test/support/clock.ts'
import { LIMIT_REACHED } from '../../../lib/limit-reached.ts'
import { type Log, silentLog } from '../../../lib/log.ts'
import type { Image } from '../../engine.ts'
import { isEngineError } from '../../errors.ts'
import { createPullBoard } from './progress.ts'
import { createPullQueue, type PullQueue } from './pull-queue.ts'

const config = { env: [], entrypoint: [], cmd: [], workingDir: '/', user: '', exposedPorts: [] }

/** Opens a queue whose pulls run until the test calls finish(reference). */
function open() {
  const clock = createTestClock()
  const warnings: unknown[] = []
  const log = { ...silentLog, warn: (fields: unknown) => void warnings.push(fields) } as unknown as Log
  const closing = new AbortController()
  const queue = createPullQueue({ clock, log, board: createPullBoard(clock), closing: closing.signal })
  const begun: string[] = []
  const ended = new Map<string, PromiseWithResolvers<void>>()
  const pull = (reference: string, teamId: string, id = `unit_${teamId}_${reference}`) => {
    const result = queue.pull(reference, { id, teamId, networkGroup: 1 }, async (granted) => {
      const { signal } = granted
      return await granted.inTurn(async () => {
        begun.push(reference)
        const end = Promise.withResolvers<void>()
        ended.set(reference, end)
        signal.addEventListener('abort', () => end.reject(signal.reason as Error), { once: true })
        await end.promise
        return imageOf(reference)
      })
    })
    result.catch(() => {})
    return result
  }
  return {
    queue,
    clock,
    warnings,
    closing,
    begun,
    pull,
    finish: (reference: string) => ended.get(reference)?.resolve(),
  }
}

function imageOf(reference: string): Image {
  return { reference, digest: `sha256:${reference}`, config }
}

/** Lets all pending promise callbacks run. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve()
}

async function kindOf(promise: Promise<unknown>): Promise<string | null> {
  return await promise.then(
    () => null,
    (error: unknown) => (isEngineError(error) ? error.kind : String(error)),
  )
}

it('a team runs three pulls at once and does not delay the pull of another team', async () => {
  const { pull, begun, warnings } = open()
  for (let n = 0; n < 40; n += 1) void pull(`stalled/${n}`, 'team_a')
  await settle()
  expect(begun).toEqual(['stalled/0', 'stalled/1', 'stalled/2'])
  void pull('good', 'team_b')
  await settle()
  expect(begun).toContain('good')
  expect(warnings).toContainEqual({ bound: 'image pulls at once', by: 'team_a', times: 1 })
  expect(LIMIT_REACHED).toBe('a bound was met')
})

it('slow pulls make room for more concurrent pulls, up to 24 in total', async () => {
  const { pull, begun, clock } = open()
  for (let team = 0; team < 10; team += 1) {
    for (let n = 0; n < 3; n += 1) void pull(`slow/${team}/${n}`, `team_${team}`)
  }
  await settle()
  expect(begun).toHaveLength(8)
  for (let minute = 0; minute < 5; minute += 1) {
    clock.advance(60_001)
    await settle()
  }
  expect(begun).toHaveLength(24)
})

it('a pull without waiters is aborted, and the next one starts in its place', async () => {
  const { pull, begun, queue } = open()
  const waits = [0, 1, 2, 3].map((n) => pull(`stalled/${n}`, 'team_a', `unit_${n}`))
  await settle()
  expect(begun).not.toContain('stalled/3')
  queue.giveUp('unit_1')
  await settle()
  expect(await kindOf(waits[1] ?? Promise.resolve())).toBe('unknown_machine')
  expect(begun).toContain('stalled/3')
})

it('a shared pull continues while one caller waits, and a later caller never joins an aborted pull', async () => {
  const { pull, begun, queue, finish } = open()
  const [first, second] = [pull('app', 'team_a', 'unit_1'), pull('app', 'team_a', 'unit_2')]
  await settle()
  queue.giveUp('unit_1')
  expect(await kindOf(first)).toBe('unknown_machine')
  finish('app')
  expect(await second).toEqual(imageOf('app'))

  const third = pull('app', 'team_a', 'unit_3')
  await settle()
  queue.giveUp('unit_3')
  expect(await kindOf(third)).toBe('unknown_machine')
  const fourth = pull('app', 'team_a', 'unit_4')
  await settle()
  finish('app')
  expect(await fourth).toEqual(imageOf('app'))
  expect(begun).toEqual(['app', 'app', 'app'])
})

it('a queued pull starts at once when a second team requests the same image', async () => {
  const { pull, begun, finish } = open()
  for (let n = 0; n < 30; n += 1) void pull(`stalled/${n}`, 'team_a')
  const byA = pull('library/debian', 'team_a')
  await settle()
  expect(begun).not.toContain('library/debian')
  const byB = pull('library/debian', 'team_b')
  await settle()
  expect(begun).toContain('library/debian')
  finish('library/debian')
  expect(await Promise.all([byA, byB])).toEqual([imageOf('library/debian'), imageOf('library/debian')])
})

it('a team can queue 64 pulls, and the next one is refused at once with host_full', async () => {
  const { pull, warnings } = open()
  const waits = Array.from({ length: 3 + 64 }, (_, n) => pull(`stalled/${n}`, 'team_a'))
  await settle()
  expect(await kindOf(pull('one-more', 'team_a'))).toBe('host_full')
  expect(warnings).toContainEqual({ bound: 'image pulls that wait', by: 'team_a', times: 1 })
  expect(await Promise.race([...waits, settle()])).toBeUndefined()
})

it('closing the images aborts all running and queued pulls', async () => {
  const { pull, closing, queue } = open()
  const waits = Array.from({ length: 20 }, (_, n) => pull(`stalled/${n}`, 'team_a'))
  await settle()
  closing.abort(new Error('closing'))
  await (queue satisfies PullQueue).drain()
  expect(await Promise.all(waits.map(kindOf))).toEqual(Array(20).fill('Error: closing'))
})
