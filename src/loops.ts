// The work nobody asks for: it takes no input, reads the store, and may run twice and in two processes.

import type { App } from './app.ts'
import { forgetOldKeys } from './domain/idempotency/once.ts'
import { destroyErroredUnits } from './domain/units/destroy.ts'
import { watchExits } from './domain/units/exits.ts'
import { reconcileMachines, resumePassingUnits } from './domain/units/reconcile.ts'
import { coolFrozenUnits, sleepIdleUnits } from './domain/units/idle.ts'
import { SECOND } from './lib/clock.ts'
import { runLoop } from './lib/loop.ts'

const loops = [
  { name: 'sleep idle units', everyMs: SECOND / 2, round: sleepIdleUnits },
  { name: 'cool frozen units', everyMs: 5 * SECOND, round: coolFrozenUnits },
  { name: 'destroy errored units', everyMs: 5 * SECOND, round: destroyErroredUnits },
  { name: 'resume passing units', everyMs: 5 * SECOND, round: resumePassingUnits },
  { name: 'reconcile machines', everyMs: 10 * SECOND, round: reconcileMachines },
  { name: 'forget old idempotency keys', everyMs: 10 * SECOND, round: forgetOldKeys },
]

/** Call it after `recover` (domain/units/reconcile.ts). `stop` resolves when the rounds under way have ended. */
export function startLoops(app: App): { stop(): Promise<void> } {
  const stopped = new AbortController()
  const { clock, log } = app
  const running = [
    watchExits(app, stopped.signal),
    ...loops.map(({ name, everyMs, round }) =>
      runLoop({ name, everyMs, run: () => round(app) }, { clock, log, signal: stopped.signal }),
    ),
  ]
  return {
    stop: async () => {
      stopped.abort()
      await Promise.all(running)
    },
  }
}
