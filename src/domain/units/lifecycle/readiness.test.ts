import { expect, it } from 'vitest'
import type { App } from '../../../app.ts'
import type { LogLine } from '../../../engine/engine.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { systemClock } from '../../../lib/clock.ts'
import { becomesReady } from './readiness.ts'

const unit = {
  id: 'unit_1',
  generation: 1,
  spec: { healthcheck: { cmd: ['probe'], intervalMs: 2000, timeoutMs: 60_000 } },
} as unknown as UnitRecord

/** An App whose clock ends no wait that can be cut short, and whose unit prints `lines`. */
function appWith(engine: object, lines: AsyncIterable<Partial<LogLine>>): App {
  const sleep = async (_ms: number, signal?: AbortSignal) =>
    await new Promise<void>((resolve, reject) => {
      if (signal) signal.addEventListener('abort', () => reject(signal.reason as Error))
      else resolve()
    })
  const logs = { logs: async () => [], followLogs: () => lines }
  return {
    clock: { ...systemClock, monotonicMs: () => 0, sleep },
    fleet: { engineOf: () => ({ ...logs, ...engine }) },
  } as unknown as App
}

it('a unit whose probe failed is probed again once it prints a line, without waiting for the pause to end', async () => {
  const print = Promise.withResolvers<void>()
  let isReady = false
  let probes = 0
  const exec = async () => {
    probes += 1
    return { exitCode: isReady ? 0 : 1, timedOut: false }
  }
  async function* lines() {
    await print.promise
    isReady = true
    yield { text: 'ready' }
  }
  const ready = becomesReady(appWith({ exec }, lines()), unit)
  await expect.poll(() => probes).toBe(1)
  print.resolve()
  expect(await ready).toBe(true)
  expect(probes).toBe(2)
})

it('a line that comes during a probe leads to another one', async () => {
  const printed = Promise.withResolvers<void>()
  let probes = 0
  const exec = async () => {
    probes += 1
    if (probes === 2) {
      second.resolve()
      await printed.promise
    }
    return { exitCode: probes < 3 ? 1 : 0, timedOut: false }
  }
  const second = Promise.withResolvers<void>()
  async function* lines() {
    yield { text: 'starting' }
    await second.promise
    yield { text: 'ready' }
    printed.resolve()
  }
  expect(await becomesReady(appWith({ exec }, lines()), unit)).toBe(true)
  expect(probes).toBe(3)
})
