// The transaction of a fork: checks whether the caller may, and inserts the rows of the copies. The team is locked,
// as for a create (units/admission/reserve.ts).

import type { Kysely } from 'kysely'
import { z } from 'zod'
import type { App } from '../../app.ts'
import { newId } from '../../lib/ids.ts'
import type { Env } from '../../contract/env.ts'
import type { UnitFork } from '../../contract/fork.ts'
import type { StoppedReason, UnitState } from '../../contract/states.ts'
import type { Database } from '../../store/db.ts'
import { makeScope } from '../../store/egress.ts'
import { findFork, type ForkRecord, insertFork } from '../../store/forks.ts'
import type { StackRecord } from '../../store/stacks.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { insertUnit } from '../../store/units.ts'
import { checkAfforded } from '../billing/afford.ts'
import type { Caller } from '../credentials/caller.ts'
import type { Once } from '../idempotency/once.ts'
import { type EffectivePolicy, checkConcurrency } from '../policies/check.ts'
import { inLiveTeamTransaction } from '../transactions/transactions.ts'
import { copyBootFiles } from '../units/model/boot-files.ts'
import { checkExisting, readAdmission } from '../units/admission/effective-policy.ts'
import { checkDisk } from '../units/admission/disk-limits.ts'
import { copySecrets } from '../units/model/env.ts'
import { newUnitRow } from '../units/model/new-row.ts'
import { askedTimeToLive } from '../units/model/time-to-live.ts'

/** What one copy will be. */
export type Copy = {
  source: UnitRecord
  name: string
  sleep: string
  sleepsTogether: boolean
  env: Env
} & CopyLabels

type CopyLabels = Pick<UnitRecord, 'metadata' | 'timeToLive' | 'atEnd'>

/** Those that the caller gives, else those of the source. */
export function labelsOf(
  source: CopyLabels,
  { metadata, timeToLive, atEnd }: Pick<UnitFork, 'metadata' | 'timeToLive' | 'atEnd'>,
): CopyLabels {
  const asked = askedTimeToLive(timeToLive)
  return {
    metadata: metadata ?? source.metadata,
    timeToLive: asked === undefined ? source.timeToLive : asked,
    atEnd: atEnd ?? source.atEnd,
  }
}

export type Plan = {
  /** The id of a unit or a stack. */
  sourceId: string
  /** The stack of the copies. */
  stack: StackRecord
  /** Whether the copies use the secrets that were generated for the source's stack. */
  sharesSecrets: boolean
  copies: Copy[]
  /** Names of skipped units, each with the reason. */
  skipped: string[]
}

/** A source changed state after it was read: thrown in the transaction, which is rolled back. */
export class SourceChanged extends Error {}

/** What a fork with an Idempotency-Key stores for its answer. */
export const keptOfForkSchema = z.object({ forkId: z.string() })

/** A unit in a transitional state, or one that failed, cannot be copied. */
export function isForkable({ state }: { state: UnitState }): boolean {
  return state === 'running' || state === 'sleeping' || state === 'stopped'
}

/**
 * `decide` reads the sources and names the copies in the transaction; it locks the stack before its units. It gets
 * the id of the fork. Returns null if `decide` threw SourceChanged, and then nothing was reserved.
 */
export async function reserveFork(
  app: App,
  caller: Caller,
  once: Once | null,
  decide: (db: Kysely<Database>, forkId: string) => Promise<Plan>,
): Promise<ForkRecord | null> {
  try {
    return await reserve(app, caller, once, decide)
  } catch (error) {
    if (error instanceof SourceChanged) return null
    throw error
  }
}

async function reserve(
  app: App,
  caller: Caller,
  once: Once | null,
  decide: (db: Kysely<Database>, forkId: string) => Promise<Plan>,
): Promise<ForkRecord> {
  const { teamId, credentialId } = caller
  return await inLiveTeamTransaction(app, { teamId, once }, async (db) => {
    const id = newId('fork')
    const plan = await decide(db, id)
    const { bounds, live, spending, diskGb } = await readAdmission(app, db, caller)
    checkCopies(bounds, plan.copies)
    const disks = plan.copies.map(({ source: { size, spec } }) => ({ size, volume: spec.volume }))
    checkDisk(app, { teamId, plan: bounds.plan, diskGb }, disks)
    const starting = plan.copies.filter(({ source }) => source.state === 'running')
    checkConcurrency(bounds.policy, live, starting.length)
    const sizes = starting.map(({ source }) => source.size)
    checkAfforded(app, spending, sizes)

    const { sourceId, stack, copies, skipped } = plan
    const createdAt = app.clock.now()
    await insertFork(db, {
      id,
      teamId,
      sourceId,
      stackId: stack.id,
      madeBy: credentialId,
      skipped,
      createdAt,
    })
    if (copies.some(({ source }) => source.egress.siblings === 'stack')) await makeScope(db, stack.id)
    for (const copy of copies) await insertCopy(app, db, caller, { ...plan, forkId: id, copy })
    await once?.keep(db, { forkId: id } satisfies z.infer<typeof keptOfForkSchema>)
    const fork = await findFork(db, { teamId, id })
    if (!fork) throw new Error('a fork was not there right after it was inserted')
    return fork
  })
}

/** Applies the checks of a create to the copies, including those of credentials that own the sources. */
export function checkCopies(
  bounds: EffectivePolicy,
  copies: { source: Pick<UnitRecord, 'size' | 'image' | 'egress' | 'spec'>; sleep: string }[],
): void {
  for (const { source, sleep } of copies) checkExisting(bounds, { ...source, sleep })
}

async function insertCopy(
  app: App,
  db: Kysely<Database>,
  caller: Caller,
  {
    forkId,
    stack,
    sharesSecrets,
    copy,
  }: Pick<Plan, 'stack' | 'sharesSecrets'> & { forkId: string; copy: Copy },
): Promise<void> {
  const { source, name, sleep, sleepsTogether, env, metadata, timeToLive, atEnd } = copy
  const { teamId } = caller
  const unitId = newId('unit')
  const row = newUnitRow(app, caller, {
    id: unitId,
    stack_id: stack.id,
    name,
    image: source.image,
    size: source.size,
    spec: { ...source.spec, env },
    isolation: source.isolation,
    host_id: source.hostId,
    sleep,
    egress: source.egress,
    sleeps_together: sleepsTogether,
    metadata,
    time_to_live: timeToLive,
    at_end: atEnd,
  })
  const copied = { forked_from: source.id, fork_id: forkId, copied: 'config' } as const
  await insertUnit(db, { ...row, ...copied, stopped_reason: leadsTo(source) })
  await copyBootFiles(db, app.secretKey, { teamId, from: source.id, to: unitId })
  await copySecrets(db, app.secretKey, {
    from: { teamId, stackId: source.stackId, unitId: source.id },
    to: { teamId, stackId: stack.id, unitId },
    env,
    isShared: sharesSecrets,
  })
}

/** The reason that records where the copy ends (contract/states.ts): running, sleeping or stopped like its source. */
function leadsTo({ state, stoppedReason }: UnitRecord): StoppedReason | null {
  if (state === 'running') return null
  if (state === 'sleeping') return 'idle'
  // The copy itself never exited, whatever ended the source.
  return stoppedReason === 'cap' || stoppedReason === 'credits' ? stoppedReason : 'user'
}
