// POST /v1/units/{id}/fork: copies one unit as it is now (spec 2.7). It does not wake its source.

import type { Kysely } from 'kysely'
import type { App } from '../../app.ts'
import { validation } from '../../contract/errors.ts'
import { type Env, processEnvSchema } from '../../contract/env.ts'
import type { ForkResult, UnitFork } from '../../contract/fork.ts'
import type { Database } from '../../store/db.ts'
import { findStack, type StackRecord } from '../../store/stacks.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnit, lockUnit, unitNameTaken } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import type { Once } from '../idempotency/once.ts'
import { waitForCapacity } from '../units/lifecycle/cold-starts.ts'
import { effectivePolicyOf } from '../units/admission/effective-policy.ts'
import { peersOf } from '../units/model/env.ts'
import { notPossibleNow } from '../units/lifecycle/failures.ts'
import { getRecord } from '../units/get.ts'
import { firstFreeName, nameTaken } from '../units/model/names.ts'
import { retryOnConflict } from '../units/lifecycle/retry-on-conflict.ts'
import { waitUntilStable } from '../units/lifecycle/wait-until-stable.ts'
import { resolveStack } from '../units/model/resolve-stack.ts'
import { checkCopies, isForkable, labelsOf, type Plan, reserveFork, SourceChanged } from './reserve.ts'
import { answerFork } from './result.ts'

const REFUSED = 'it cannot be forked'

export async function forkUnit(
  app: App,
  caller: Caller,
  id: string,
  body: UnitFork,
  once: Once | null = null,
): Promise<ForkResult> {
  const fork = await retryOnConflict(async () => {
    const source = await waitUntilStable(app, caller, id)
    if (!isForkable(source)) throw notPossibleNow(source, REFUSED)
    checkCopies(effectivePolicyOf(app, caller), [{ source, sleep: body.sleep ?? source.sleep }])
    if (source.state === 'running') await waitForCapacity(app, source)
    return await reserveFork(app, caller, once, (db, forkId) =>
      decide(app, db, { forkId, found: source }, body),
    )
  })
  if (fork === null) throw notPossibleNow(await getRecord(app, caller, id), REFUSED)
  return await answerFork(app, caller, fork, body)
}

async function decide(
  app: App,
  db: Kysely<Database>,
  { forkId, found }: { forkId: string; found: UnitRecord },
  body: UnitFork,
): Promise<Plan> {
  const { id, teamId } = found
  const { name, stack: stackName, sleep } = body
  const stack = await stackOf(app, db, { forkId, found }, stackName)
  await lockUnit(db, id)
  const source = await findUnit(db, { teamId, id, now: app.clock.now() })
  if (source?.revision !== found.revision) throw new SourceChanged()

  const isTaken = (wanted: string) => unitNameTaken(db, { stackId: stack.id, name: wanted })
  if (name !== undefined && (await isTaken(name))) throw nameTaken(name)
  const isOwnStack = stack.id === source.stackId
  const copyName = name ?? (await firstFreeName(source.name, isTaken))
  const env = envOfCopy(source, body)
  if (!isOwnStack) await refuseLostPeers(db, { source, env }, { stack, name: copyName })
  const copy = {
    source,
    name: copyName,
    sleep: sleep ?? source.sleep,
    // With its own window it sleeps alone, like any unit.
    sleepsTogether: isOwnStack && sleep === undefined && source.sleepsTogether,
    env,
    ...labelsOf(source, body),
  }
  return { sourceId: id, stack, sharesSecrets: isOwnStack, copies: [copy], skipped: [] }
}

/** Throws `validation` where both together are more than a unit may have. */
function envOfCopy({ spec }: UnitRecord, { env: own = {} }: UnitFork): Env {
  const env = { ...spec.env, ...own }
  const plain = Object.entries(env).filter(([, value]) => typeof value === 'string')
  const [issue] = processEnvSchema.safeParse(Object.fromEntries(plain)).error?.issues ?? []
  if (issue) throw validation([{ path: 'env', message: `with the source's, ${issue.message}` }])
  return env
}

/**
 * Refuses a copy that would look for its database where no such unit exists, although its source does (decisions/forks.md).
 */
async function refuseLostPeers(
  db: Kysely<Database>,
  { source: { stackId }, env }: { source: UnitRecord; env: Env },
  to: { stack: StackRecord; name: string },
): Promise<void> {
  for (const name of peersOf(env)) {
    const isThere = name === to.name || (await unitNameTaken(db, { stackId: to.stack.id, name }))
    if (isThere || !(await unitNameTaken(db, { stackId, name }))) continue
    const message =
      `the environment has the address of the unit "${name}", {{unit:${name}}}, and the stack "${to.stack.name}" has no such unit: ` +
      'create one there first, or fork the whole stack with POST /v1/stacks/{id}/fork'
    throw validation([{ path: 'stack', message }])
  }
}

/**
 * Returns the source's stack, or the named one, created if absent; a stack created here is removed if the fork fails.
 */
async function stackOf(
  app: App,
  db: Kysely<Database>,
  { forkId, found: { teamId, stackId, name } }: { forkId: string; found: UnitRecord },
  stack: string | undefined,
): Promise<StackRecord> {
  if (stack !== undefined)
    return await resolveStack(app, db, teamId, { stack, unitName: name, madeBy: forkId })
  const own = await findStack(db, { teamId, id: stackId })
  if (!own) throw new Error('the stack of a unit does not exist')
  return own
}
