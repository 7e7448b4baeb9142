// One claim of a controller that starts a program for each: the unit of the session is found, made or woken, the vendor's worker
// runs in it to its end, and the unit sleeps, or goes (docs/guides/claim-and-spawn.md).

import type { Unit } from '../../sdk/src/index.ts'
import type { Claim } from './claim.ts'
import type { SessionUnits } from './session-units.ts'
import { envOf, type Following, putToken, runWorker } from './worker.ts'

export type SpawnOptions = Omit<Following, 'isEnded'> & {
  units: SessionUnits
  claim: Claim
  /** Whether the unit goes when the worker has ended; else it sleeps, and wakes again after this window. */
  after: 'destroy' | { sleep: string }
}

/** Resolves with the worker's exit code; null if it was lost with its unit. The signal ends the worker. */
export async function spawnWorker(options: SpawnOptions): Promise<number | null> {
  const { units, claim, tell, signal } = options
  const { session } = claim
  signal.throwIfAborted()
  const asked = { metadata: {}, key: crypto.randomUUID(), env: envOf(claim) }
  const unit = await units.standing(session, asked)
  await putToken(unit, claim)
  try {
    return await runWorker(unit, claim, { ...options, isEnded: true })
  } finally {
    await leave(unit, options).catch((error: unknown) =>
      tell({
        kind: 'said',
        session,
        sentence: `unit ${unit.id} was left as it is: ${String(error)}`,
      }),
    )
  }
}

async function leave(unit: Unit, { units, after }: SpawnOptions): Promise<void> {
  if (after === 'destroy') await units.destroy(unit)
  else await unit.sleep(after.sleep, { now: true })
}
