// The calls of a month, as they are drawn.

import type { App } from '../../../src/app.ts'
import { type Size, sizes } from '../../../src/contract/policy.ts'
import type { Caller } from '../../../src/domain/credentials/caller.ts'
import { forkUnit } from '../../../src/domain/forks/fork-unit.ts'
import { createUnits } from '../../../src/domain/units/create.ts'
import { destroyUnit } from '../../../src/domain/units/destroy.ts'
import { execInUnit } from '../../../src/domain/units/exec.ts'
import { sleepUnit } from '../../../src/domain/units/sleep.ts'
import { startUnit } from '../../../src/domain/units/start.ts'
import { stopUnit } from '../../../src/domain/units/stop.ts'
import { createBody } from '../../support/domain.ts'
import type { Random } from '../random.ts'
import type { Standing } from './account.ts'

const windows = ['30m', '2h', '8h', '2d', 'never'] as const

export async function create(app: App, caller: Caller, random: Random, number: number): Promise<unknown> {
  const gb = random.chance(0.5) ? 1 + random.below(20) : 0
  const spec = {
    name: `unit-${number}`,
    size: random.pick(sizes) satisfies Size,
    sleep: random.pick(windows),
    ...(gb === 0 ? {} : { volume: { mount: '/data', gb } }),
  }
  return await createUnits(app, caller, createBody(spec, { stack: `stack-${random.below(20)}` }))
}

/** Draws a call for a unit in this state, or null for none. */
export function drawAct(
  random: Random,
  { id, state }: Standing,
  { mayFork }: { mayFork: boolean },
): ((app: App, caller: Caller) => Promise<unknown>) | null {
  const luck = random.below(100)
  const sleep = { sleep: random.pick(windows), stack: random.chance(0.05), now: true }
  switch (state) {
    case 'running':
      if (luck < 30) return (app, caller) => sleepUnit(app, caller, id, sleep)
      if (luck < 45) return (app, caller) => stopUnit(app, caller, id)
      if (luck < 55 && mayFork)
        return (app, caller) => forkUnit(app, caller, id, { wait: true, waitTimeoutMs: 120_000 })
      if (luck < 56) return (app, caller) => destroyUnit(app, caller, id)
      return (app, caller) => execInUnit(app, caller, id, { cmd: ['true'], timeoutMs: 60_000 })
    case 'sleeping':
      if (luck < 80) return (app, caller) => execInUnit(app, caller, id, { cmd: ['true'], timeoutMs: 60_000 })
      if (luck < 84) return (app, caller) => stopUnit(app, caller, id)
      return luck < 85 ? (app, caller) => destroyUnit(app, caller, id) : null
    case 'stopped':
      if (luck < 80) return (app, caller) => startUnit(app, caller, id)
      return luck < 81 ? (app, caller) => destroyUnit(app, caller, id) : null
    default:
      return null
  }
}
