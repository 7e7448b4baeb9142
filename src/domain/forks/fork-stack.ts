// POST /v1/stacks/{id}/fork: copies all units of a stack, as they are at one instant, into a new stack (spec 2.7).
// Units that are being created or have failed are skipped, and the answer lists them.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { conflict, invalidState, notFound } from '../../contract/errors.ts'
import type { ForkResult, StackFork } from '../../contract/fork.ts'
import { limits } from '../../contract/limits.ts'
import { isTransitional, type UnitState } from '../../contract/states.ts'
import type { Database } from '../../store/db.ts'
import { findStack, findStackByName, type StackRecord } from '../../store/stacks.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { listUnitsOfStacks, lockUnitsOfStack } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import type { Once } from '../idempotency/once.ts'
import { getLiveStack } from '../stacks/get.ts'
import { waitForCapacity } from '../units/lifecycle/cold-starts.ts'
import { effectivePolicyOf } from '../units/admission/effective-policy.ts'
import { copyStackSecrets } from '../units/model/env.ts'
import { retryOnConflict } from '../units/lifecycle/retry-on-conflict.ts'
import { waitUntilStable } from '../units/lifecycle/wait-until-stable.ts'
import { firstFreeStackName, makeStack } from '../units/model/resolve-stack.ts'
import { checkCopies, isForkable, labelsOf, type Plan, reserveFork, SourceChanged } from './reserve.ts'
import { answerFork } from './result.ts'

export async function forkStack(
  app: App,
  caller: Caller,
  idOrName: string,
  body: StackFork,
  once: Once | null = null,
): Promise<ForkResult> {
  const stack = await getLiveStack(app, caller, idOrName)
  const fork = await retryOnConflict(async () => {
    const sources = (await settledUnitsOf(app, caller, stack)).filter(isForkable)
    checkCopies(
      effectivePolicyOf(app, caller),
      sources.map((source) => ({ source, sleep: body.sleep ?? source.sleep })),
    )
    const running = sources.find(({ state }) => state === 'running')
    if (running) await waitForCapacity(app, running)
    return await reserveFork(app, caller, once, (db) => decide(app, db, stack, body))
  })
  if (fork === null) {
    throw invalidState(
      'The units of the stack keep changing state, so it cannot be forked now; try again.',
      null,
    )
  }
  return await answerFork(app, caller, fork, body)
}

async function settledUnitsOf(app: App, caller: Caller, { id, teamId }: StackRecord): Promise<UnitRecord[]> {
  const units = await listUnitsOfStacks(app.db, { teamId, stackIds: [id], now: app.clock.now() })
  return await Promise.all(
    units.map(async (unit) =>
      isTransitional(unit.state) ? await waitUntilStable(app, caller, unit.id) : unit,
    ),
  )
}

async function decide(
  app: App,
  db: Kysely<Database>,
  { id, teamId }: StackRecord,
  body: StackFork,
): Promise<Plan> {
  const { into, sleep } = body
  const stack = await findStack(db, { teamId, id })
  if (!stack || stack.deletedAt !== null) throw notFound('stack', id)
  await lockUnitsOfStack(db, id)
  const units = await listUnitsOfStacks(db, { teamId, stackIds: [id], now: app.clock.now() })
  const { sources, skipped } = sort(units)
  if (into !== undefined && (await findStackByName(db, { teamId, name: into }))) {
    throw conflict(`The team already has a stack named "${into}"; choose another name.`)
  }
  const target = await makeStack(app, db, {
    teamId,
    name: into ?? (await firstFreeStackName(db, { teamId, wanted: stack.name })),
    sleep: stack.sleep === null ? null : (sleep ?? stack.sleep),
    isUnnamed: false,
    madeBy: null,
  })
  await copyStackSecrets(db, app.secretKey, { teamId, from: id, to: target.id })
  const copies = sources.map((source) => ({
    source,
    name: source.name,
    sleep: sleep ?? source.sleep,
    sleepsTogether: source.sleepsTogether,
    env: source.spec.env,
    ...labelsOf(source, body),
  }))
  return { sourceId: id, stack: target, sharesSecrets: true, copies, skipped }
}

const leftOut: Partial<Record<UnitState, string>> = {
  creating: 'it is still being created',
  error: 'it could not be created',
  destroying: 'it is being destroyed',
}

function sort(units: UnitRecord[]): { sources: UnitRecord[]; skipped: string[] } {
  const sources = units.filter(isForkable)
  const skipped = units.flatMap(({ name, state }) => {
    const reason = leftOut[state]
    return reason === undefined ? [] : [`${name}: ${reason}`]
  })
  if (sources.length + skipped.length < units.length) throw new SourceChanged()
  if (sources.length === 0) throw invalidState('The stack has no unit that can be forked.', { skipped })
  if (sources.length > limits.forkUnits) {
    const text = `A fork copies at most ${limits.forkUnits} units at once, and the stack has ${sources.length}`
    throw invalidState(`${text}; fork its units one by one.`, { skipped })
  }
  return { sources, skipped }
}
