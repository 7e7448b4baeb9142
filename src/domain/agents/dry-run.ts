// Computes what a change of a policy would stop: makes the change in a transaction, reads the units beyond the new
// limits, and rolls back.

import type { App } from '../../app.ts'
import type { AgentDryRun, AgentDryRunAsked } from '../../contract/agent.ts'
import { changeCredential } from '../../store/credentials.ts'
import { listUnitsBeyondLimits } from '../../store/spending.ts'
import { authorize } from '../authorization/authorize.ts'
import { sizeNanoCentsPerHour } from '../billing/prices.ts'
import { RESERVED_MS } from '../billing/spending-limits.ts'
import type { Caller } from '../credentials/caller.ts'
import { listWider } from '../egress/narrow.ts'
import { inDiscardedTransaction } from '../transactions/transactions.ts'
import { getAgent, refuseRevoked } from './find.ts'

/** Returns the running units of the agent that the change would stop at once, oldest first. */
export async function dryRunAgentChange(
  app: App,
  caller: Caller,
  { id, policy }: { id: string } & AgentDryRunAsked,
): Promise<AgentDryRun> {
  const { teamId } = caller
  const agent = await getAgent(app, caller, 'agent', id)
  authorize(caller, 'agent.change', { createdBy: agent.created_by })
  refuseRevoked(agent)
  const { beyond, wider } = await inDiscardedTransaction(app, async (db) => {
    await changeCredential(db, { teamId, id, policy })
    const moment = { now: app.clock.now(), sizePrices: sizeNanoCentsPerHour, reservedMs: RESERVED_MS }
    const units = { teamId, heldBy: id }
    return {
      beyond: await listUnitsBeyondLimits(db, { ...moment, teamId }),
      wider: await listWider(app, db, units, policy),
    }
  })
  const stops = beyond.filter(({ unit, reason }) => unit.heldBy === id && reason === 'cap')
  return {
    stops: stops.map(({ unit }) => ({ id: unit.id, name: unit.name })),
    narrows: wider.map((unit) => ({ id: unit.id, name: unit.name })),
  }
}
