// Background jobs. Each takes no input and reads the store, so it may run again after a crash and overlap a run that hangs.

import type { App } from './app.ts'
import { chargeMeters } from './domain/billing/charge.ts'
import { verifyLedger } from './domain/billing/verify-ledger.ts'
import { forgetOldRates } from './domain/credentials/rate-limit.ts'
import { applyDueEgress } from './domain/egress/apply.ts'
import { forgetOldEgressLog, watchEgress } from './domain/egress/keep-log.ts'
import { resumeForks } from './domain/forks/run.ts'
import { forgetOldAuditRows } from './domain/audit/forget.ts'
import { forgetSessions } from './domain/hosted-agents/tell.ts'
import { renewCertificates } from './domain/hosts/renew.ts'
import { forgetOldKeys } from './domain/idempotency/once.ts'
import { forgetAllowances } from './domain/allowances/spend.ts'
import { deliverMails } from './domain/mail/deliver.ts'
import { reconcilePayments } from './domain/payments/reconcile.ts'
import { forgetAuthorizations } from './domain/oauth/forget.ts'
import { forgetSignIns } from './domain/providers/forget.ts'
import { adoptClockJump } from './domain/time/clock-jumps.ts'
import { noteFailure } from './domain/time/heartbeat.ts'
import { destroyErroredUnits } from './domain/units/destroy.ts'
import { endUnits } from './domain/units/ends.ts'
import { watchPulls } from './domain/units/lifecycle/creation-progress.ts'
import { watchExits } from './domain/units/lifecycle/exits.ts'
import { watchProcessEnds } from './domain/units/lifecycle/process-ends.ts'
import { cleanUpFailedCreates } from './domain/units/create-group.ts'
import { reconcileMachines, resumeOperations } from './domain/units/reconcile.ts'
import { watchHosts } from './domain/units/watch-hosts.ts'
import { enforceLimits } from './domain/units/admission/stop-beyond-limits.ts'
import { forgetOldMetrics, recordMetrics } from './domain/units/metrics-history.ts'
import { hibernateFrozenUnits, giveMemoryBack, sleepIdleUnits } from './domain/units/activity/idle.ts'
import { watchTraffic } from './domain/units/activity/traffic.ts'
import { MINUTE, SECOND } from './lib/clock.ts'
import { runLoop } from './lib/loop.ts'

const jobs = [
  { name: 'sleep idle units', everyMs: SECOND / 2, run: sleepIdleUnits },
  { name: 'end units', everyMs: SECOND / 2, run: endUnits },
  { name: 'hibernate frozen units', everyMs: 5 * SECOND, run: hibernateFrozenUnits },
  { name: 'give memory back', everyMs: SECOND, run: giveMemoryBack },
  { name: 'destroy errored units', everyMs: 5 * SECOND, run: destroyErroredUnits },
  { name: 'clean up failed creates', everyMs: 5 * SECOND, run: cleanUpFailedCreates },
  { name: 'resume unit operations', everyMs: 5 * SECOND, run: resumeOperations },
  { name: 'resume forks', everyMs: 5 * SECOND, run: resumeForks },
  { name: 'watch hosts', everyMs: 2 * SECOND, run: watchHosts },
  { name: 'renew certificates of hosts', everyMs: 15 * SECOND, run: renewCertificates },
  { name: 'reconcile machines', everyMs: 5 * SECOND, run: reconcileMachines },
  { name: 'follow the wall clock', everyMs: SECOND, run: adoptClockJump },
  { name: 'enforce limits', everyMs: 5 * SECOND, run: enforceLimits },
  { name: 'apply rules of egress', everyMs: 5 * SECOND, run: applyDueEgress },
  { name: 'charge meters', everyMs: MINUTE, run: chargeMeters },
  { name: 'record metrics', everyMs: MINUTE, run: recordMetrics },
  { name: 'verify the ledger', everyMs: 5 * MINUTE, run: verifyLedger },
  { name: 'deliver mails', everyMs: SECOND, run: deliverMails },
  { name: 'reconcile payments', everyMs: SECOND, run: reconcilePayments },
  { name: 'delete old sign-ins', everyMs: MINUTE, run: forgetSignIns },
  { name: 'delete old allowances', everyMs: MINUTE, run: forgetAllowances },
  { name: 'delete old authorizations', everyMs: MINUTE, run: forgetAuthorizations },
  { name: 'delete old idempotency keys', everyMs: 10 * SECOND, run: forgetOldKeys },
  { name: 'delete old rates', everyMs: 10 * SECOND, run: forgetOldRates },
  { name: 'delete old audit rows', everyMs: 10 * SECOND, run: forgetOldAuditRows },
  { name: 'delete old lines of egress', everyMs: MINUTE, run: forgetOldEgressLog },
  { name: 'delete old sessions of hosted agents', everyMs: 10 * MINUTE, run: forgetSessions },
  { name: 'delete old metrics', everyMs: MINUTE, run: forgetOldMetrics },
]

/** For one run. Statements and engine calls have shorter timeouts, and no run makes many in a row. */
const JOB_TIMEOUT_MS = 2 * MINUTE

/** Call it after `recover` (domain/units/reconcile.ts). `stop` resolves when the runs in progress have ended. */
export function startJobs(app: App): { stop(): Promise<void> } {
  const stopped = new AbortController()
  const { clock, log } = app
  // A rejection means that the process is stuck: it is not caught, so the process exits and is restarted (processes/run-process.ts).
  const running = [
    watchExits(app, stopped.signal),
    watchProcessEnds(app, stopped.signal),
    watchTraffic(app, stopped.signal),
    watchEgress(app, stopped.signal),
    watchPulls(app, stopped.signal),
    ...jobs.map(({ name, everyMs, run }) => {
      const loop = { name, everyMs, timeoutMs: JOB_TIMEOUT_MS, run: () => runJob(app, name, run) }
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

async function runJob(app: App, job: string, run: (app: App) => Promise<void>): Promise<void> {
  try {
    await run(app)
    app.observer.jobEnded({ job, result: 'success' })
  } catch (error) {
    app.observer.jobEnded({ job, result: 'failure' })
    noteFailure(app, error)
    throw error
  }
}
