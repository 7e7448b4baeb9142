// The work nobody asks for: it takes no input, reads the store, and may run twice and in two processes.

import type { App } from './app.ts'
import { chargeMeters } from './domain/billing/charge.ts'
import { recountLedger } from './domain/billing/verify-ledger.ts'
import { forgetOldRates } from './domain/credentials/rate-limit.ts'
import { resumeForks } from './domain/forks/run.ts'
import { forgetOldAuditRows } from './domain/audit/forget.ts'
import { forgetOldKeys } from './domain/idempotency/once.ts'
import { forgetAllowances } from './domain/allowances/spend.ts'
import { deliverMails } from './domain/mail/deliver.ts'
import { settlePayments } from './domain/payments/reconcile.ts'
import { forgetSignIns } from './domain/providers/forget.ts'
import { followWallClock } from './domain/time/clock-jumps.ts'
import { noteFailure } from './domain/time/heartbeat.ts'
import { destroyErroredUnits } from './domain/units/destroy.ts'
import { watchExits } from './domain/units/lifecycle/exits.ts'
import { destroyBrokenCreates } from './domain/units/lifecycle/create-group.ts'
import { reconcileMachines, resumePassingUnits } from './domain/units/lifecycle/reconcile.ts'
import { enforceLimits } from './domain/units/admission/enforce-limits.ts'
import { coolFrozenUnits, giveMemoryBack, sleepIdleUnits } from './domain/units/activity/idle.ts'
import { watchTraffic } from './domain/units/activity/traffic.ts'
import { MINUTE, SECOND } from './lib/clock.ts'
import { runLoop } from './lib/loop.ts'

const loops = [
  { name: 'sleep idle units', everyMs: SECOND / 2, round: sleepIdleUnits },
  { name: 'cool frozen units', everyMs: 5 * SECOND, round: coolFrozenUnits },
  { name: 'give memory back', everyMs: SECOND, round: giveMemoryBack },
  { name: 'destroy errored units', everyMs: 5 * SECOND, round: destroyErroredUnits },
  { name: 'destroy what broke off', everyMs: 5 * SECOND, round: destroyBrokenCreates },
  { name: 'resume passing units', everyMs: 5 * SECOND, round: resumePassingUnits },
  { name: 'resume forks', everyMs: 5 * SECOND, round: resumeForks },
  { name: 'reconcile machines', everyMs: 5 * SECOND, round: reconcileMachines },
  { name: 'follow the wall clock', everyMs: SECOND, round: followWallClock },
  { name: 'enforce limits', everyMs: 5 * SECOND, round: enforceLimits },
  { name: 'charge meters', everyMs: MINUTE, round: chargeMeters },
  { name: 'recount the ledger', everyMs: 5 * MINUTE, round: recountLedger },
  { name: 'deliver mails', everyMs: SECOND, round: deliverMails },
  { name: 'settle payments', everyMs: SECOND, round: settlePayments },
  { name: 'forget old sign-ins', everyMs: MINUTE, round: forgetSignIns },
  { name: 'forget old allowances', everyMs: MINUTE, round: forgetAllowances },
  { name: 'forget old idempotency keys', everyMs: 10 * SECOND, round: forgetOldKeys },
  { name: 'forget old rates', everyMs: 10 * SECOND, round: forgetOldRates },
  { name: 'forget old audit rows', everyMs: 10 * SECOND, round: forgetOldAuditRows },
]

/** Of any round: statements and calls of the engine have shorter deadlines, and no round makes many in a row. */
const LONGEST_ROUND_MS = 2 * MINUTE

/** Call it after `recover` (domain/units/lifecycle/reconcile.ts). `stop` resolves when the rounds under way have ended. */
export function startLoops(app: App): { stop(): Promise<void> } {
  const stopped = new AbortController()
  const { clock, log } = app
  // One that throws is stuck: nobody catches it, so the process ends and is started afresh (processes/run-process.ts).
  const running = [
    watchExits(app, stopped.signal),
    watchTraffic(app, stopped.signal),
    ...loops.map(({ name, everyMs, round }) => {
      const loop = { name, everyMs, longestMs: LONGEST_ROUND_MS, run: () => runRound(app, name, round) }
      return runLoop(loop, { clock, log, signal: stopped.signal })
    }),
  ]
  return {
    stop: async () => {
      stopped.abort()
      await Promise.all(running)
    },
  }
}

async function runRound(app: App, loop: string, round: (app: App) => Promise<void>): Promise<void> {
  try {
    await round(app)
    app.observer.roundEnded({ loop, outcome: 'done' })
  } catch (error) {
    app.observer.roundEnded({ loop, outcome: 'failed' })
    noteFailure(app, error)
    throw error
  }
}
