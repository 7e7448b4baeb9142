// The unit of which those of sessions are to be copies: a person who chooses one is told at once what the
// key does not allow of it.

import type { App } from '../../app.ts'
import { AppError, validation } from '../../contract/errors.ts'
import type { Policy } from '../../contract/policy.ts'
import type { HostedPlan } from '../../store/hosted-agents.ts'
import type { Caller } from '../credentials/caller.ts'
import { checkExisting, effectivePolicyOf } from '../units/admission/effective-policy.ts'
import { getRecord } from '../units/get.ts'

/** Throws `validation` for a unit of which a key with this policy may make no copies, and `not_found` for one that is gone. */
export async function checkSource(
  app: App,
  caller: Caller,
  { copyOf, sleep }: Pick<HostedPlan, 'copyOf' | 'sleep'>,
  policy: Policy,
): Promise<void> {
  if (copyOf === null) return
  const source = await getRecord(app, caller, copyOf)
  if (source.state === 'destroyed' || source.state === 'destroying') throw refused('it was destroyed')
  try {
    // What the team allows holds for the unit itself.
    checkExisting(effectivePolicyOf(app, { policy, plan: caller.plan }), { ...source, sleep })
  } catch (error) {
    if (error instanceof AppError) throw refused(error.message)
    throw error
  }
}

function refused(why: string): AppError {
  return validation([{ path: 'copyOf', message: `must be a unit that the key may copy: ${why}` }])
}
