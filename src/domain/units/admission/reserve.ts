// The transaction of a create: checks whether the caller may, and inserts the rows. The team is locked, so that fifty
// concurrent creates cannot all take the last place.

import type { Kysely } from 'kysely'
import { z } from 'zod'
import type { App } from '../../../app.ts'
import { unavailable, validation } from '../../../contract/errors.ts'
import type { IsolationClass } from '../../../engine/engine.ts'
import type { FleetHost } from '../../../engine/fleet.ts'
import { newId } from '../../../lib/ids.ts'
import type { Database } from '../../../store/db.ts'
import { makeScope } from '../../../store/egress.ts'
import { insertEndpoint } from '../../../store/endpoints.ts'
import type { StackRecord } from '../../../store/stacks.ts'
import type { StoredSpec, UnitRecord } from '../../../store/unit-record.ts'
import { findUnitOfAnyTeam, insertUnit, unitNameTaken } from '../../../store/units.ts'
import { checkAfforded } from '../../billing/afford.ts'
import type { Caller } from '../../credentials/caller.ts'
import { urlOf } from '../../endpoints/address.ts'
import { newEndpoint } from '../../endpoints/name.ts'
import { chooseHost, isStillPlaced } from '../../hosts/place.ts'
import type { Once } from '../../idempotency/once.ts'
import { type EffectivePolicy, checkConcurrency, checkSleep } from '../../policies/check.ts'
import { askedEgress } from '../../policies/egress.ts'
import { checkEnforced } from '../../policies/enforced.ts'
import { checkBindings, checkBrokeredEnv } from '../../secrets/bind.ts'
import { inLiveTeamTransaction } from '../../transactions/transactions.ts'
import { waitForCapacity } from '../lifecycle/cold-starts.ts'
import { declaredFiles, keepBootFiles } from '../model/boot-files.ts'
import { effectivePolicyOf, readAdmission } from './effective-policy.ts'
import { checkDisk } from './disk-limits.ts'
import { declaredEnv, keepSecrets } from '../model/env.ts'
import { retryOnConflict } from '../lifecycle/retry-on-conflict.ts'
import { machineSizes } from '../model/machine.ts'
import { firstFreeName, nameTaken } from '../model/names.ts'
import { newUnitRow } from '../model/new-row.ts'
import { timeToLiveOf } from '../model/time-to-live.ts'
import type { CreatePlan, PlannedUnit, PlannedUnits } from '../model/plan.ts'
import { resolveStack } from '../model/resolve-stack.ts'
import { checkHostVolumes, classFor, checkPlanned, sleepOf } from './check-planned.ts'

export type Reservation = {
  /** In the order in which they start. */
  units: UnitRecord[]
  /** The plan's outputs, its generated secrets, which are shown only once, and the URL. */
  outputs: Record<string, string>
}

/** What a create with an Idempotency-Key stores for its answer, in case the call breaks off. */
export const keptOfCreateSchema = z.object({
  recipe: z.string().nullable(),
  unitIds: z.array(z.string()),
  outputs: z.record(z.string(), z.string()),
  /** Where the units were to be, by which the outputs were written. */
  hostId: z.string().optional(),
})

/** Another create has placed the team on another host meanwhile: the transaction is rolled back. */
class Misplaced extends Error {}

/** Returns units in `creating`. Throws if policy, plan or concurrency do not allow them, or a name is taken. */
export async function reserveUnits(
  app: App,
  caller: Caller,
  plan: CreatePlan,
  once: Once | null,
): Promise<Reservation> {
  const reserved = await retryOnConflict(async () => {
    try {
      return await reserve(app, caller, plan, once)
    } catch (error) {
      if (error instanceof Misplaced) return null
      throw error
    }
  })
  if (!reserved) throw unavailable('The units of this team are being placed; send the call again.', 1)
  return reserved
}

async function reserve(app: App, caller: Caller, plan: CreatePlan, once: Once | null): Promise<Reservation> {
  const { teamId } = caller
  const { units: wanted } = plan.make({ name: plan.name, stackName: plan.stack ?? plan.name })
  checkPlanned(app, effectivePolicyOf(app, caller), wanted)
  for (const { spec } of wanted) {
    await checkEnforced(app, askedEgress(effectivePolicyOf(app, caller), spec.egress), 'spec.egress')
    await checkBrokeredEnv(app, spec.env)
  }
  const specs = wanted.map(({ spec }) => spec)
  const largestVolumeGb = Math.max(0, ...specs.map(({ volume }) => volume?.gb ?? 0))
  const memoryMb = specs.reduce((sum, { size }) => sum + machineSizes[size].memoryMb, 0)
  const host = await chooseHost(app, {
    teamId,
    memoryMb,
    largestVolumeGb,
    images: specs.map(({ image }) => image),
  })
  const [isolation] = await Promise.all([
    classFor(app, host, specs),
    checkHostVolumes(app, host, teamId, specs),
    waitForCapacity(app, { teamId, hostId: host.id }),
  ])
  return await inLiveTeamTransaction(app, { teamId, once }, async (db) => {
    if (!(await isStillPlaced(app, db, { teamId, host }))) throw new Misplaced()
    const { bounds, live, spending, diskGb } = await readAdmission(app, db, caller)
    checkPlanned(app, bounds, wanted)
    checkConcurrency(bounds.policy, live, wanted.length)
    checkDisk(app, { teamId, plan: bounds.plan, diskGb }, specs)
    checkAfforded(
      app,
      spending,
      specs.map(({ size }) => size),
    )
    const first = newId('unit')
    const named = { stack: plan.stack, unitName: plan.name }
    const stack = await resolveStack(app, db, teamId, { ...named, madeBy: first })
    const made = await nameAll(db, plan, { stack, isNew: stack.madeBy === first })
    const rules = made.units.map(({ spec }) => askedEgress(bounds, spec.egress))
    if (rules.some(({ siblings }) => siblings === 'stack')) await makeScope(db, stack.id)

    const inserted: UnitRecord[] = []
    const outputs = { ...made.outputs }
    for (const planned of made.units) {
      const id = inserted.length === 0 ? first : newId('unit')
      const madeWith = made.units.length === 1 ? null : first
      const insertion = { id, planned, stack, host, isolation, madeWith, bounds }
      const unit = await insertPlanned(app, db, caller, insertion)
      const owner = { teamId, stackId: stack.id, unitId: id }
      Object.assign(outputs, await keepSecrets(db, app.secretKey, owner, planned.spec.env))
      if (plan.expose && made.frontDoor?.unit === planned.spec.name) {
        const url = { port: made.frontDoor.port, protocol: 'http', mode: plan.expose } as const
        const of = { id, teamId, name: planned.spec.name }
        const endpoint = newEndpoint(app.secretKey, of, { ...url, at: app.clock.now() })
        await insertEndpoint(db, endpoint)
        inserted.push(await reread(app, db, id))
      } else inserted.push(unit)
    }
    const told = withUrl(app, inserted, outputs)
    const unitIds = inserted.map(({ id }) => id)
    const kept = { recipe: plan.recipe, unitIds, outputs: told, hostId: inserted[0]?.hostId }
    await once?.keep(db, kept satisfies z.infer<typeof keptOfCreateSchema>)
    return { units: inserted, outputs: told }
  })
}

/** Gives the plan's units names that are free in the stack. Throws `conflict` if the caller chose a taken one. */
async function nameAll(
  db: Kysely<Database>,
  plan: CreatePlan,
  { stack: { id: stackId, name: stackName }, isNew }: { stack: StackRecord; isNew: boolean },
): Promise<PlannedUnits> {
  if (isNew) return plan.make({ name: plan.name, stackName })
  const firstTaken = async ({ units }: PlannedUnits): Promise<string | null> => {
    for (const { spec } of units) if (await unitNameTaken(db, { stackId, name: spec.name })) return spec.name
    return null
  }
  const isTaken = async (name: string) => (await firstTaken(plan.make({ name, stackName }))) !== null
  const name = plan.isNamed ? plan.name : await firstFreeName(plan.name, isTaken)
  const made = plan.make({ name, stackName })
  const taken = plan.isNamed ? await firstTaken(made) : null
  if (taken === null) return made
  throw nameTaken(taken)
}

type Insertion = {
  id: string
  planned: PlannedUnit
  stack: StackRecord
  host: FleetHost
  isolation: IsolationClass
  madeWith: string | null
  bounds: EffectivePolicy
}

async function insertPlanned(
  app: App,
  db: Kysely<Database>,
  caller: Caller,
  { id, planned, stack, host, isolation, madeWith, bounds }: Insertion,
): Promise<UnitRecord> {
  const { spec } = planned
  const { teamId } = caller
  const together = spec.sleep === undefined ? stack.sleep : null
  if (together !== null) checkSleep(bounds, together)
  const egress = askedEgress(bounds, spec.egress)
  await checkBindings(db, teamId, { env: spec.env, egress })
  const row = newUnitRow(app, caller, {
    id,
    stack_id: stack.id,
    name: spec.name,
    image: spec.image,
    size: spec.size,
    spec: storedSpec(planned),
    isolation,
    host_id: host.id,
    sleep: together ?? sleepOf(app, bounds, spec),
    egress,
    sleeps_together: together !== null,
    metadata: spec.metadata,
    time_to_live: timeToLiveOf(spec),
    at_end: spec.atEnd ?? 'destroy',
  })
  const unit = await insertUnit(db, { ...row, made_with: madeWith })
  await keepBootFiles(db, app.secretKey, { teamId, unitId: id }, spec.files)
  return unit
}

async function reread(app: App, db: Kysely<Database>, id: string): Promise<UnitRecord> {
  const unit = await findUnitOfAnyTeam(db, { id, now: app.clock.now() })
  if (!unit) throw new Error('a unit was not there right after it was inserted')
  return unit
}

/** `hostId`: by which the outputs were written. Units may be on another one by now, whose gateway has URLs of its own. */
export function outputsNow(
  app: App,
  units: UnitRecord[],
  { outputs, hostId }: { outputs: Record<string, string>; hostId?: string | undefined },
): Record<string, string> {
  const hasMoved = hostId !== undefined && units.some((unit) => unit.hostId !== hostId)
  if (!hasMoved || units.every(({ endpoints }) => endpoints.length === 0)) return outputs
  const others = Object.entries(outputs).filter(([name]) => name !== 'URL')
  return withUrl(app, units, Object.fromEntries(others))
}

/** Adds the URL to the outputs (spec 2.5); a secret cannot have the same name. */
function withUrl(app: App, units: UnitRecord[], outputs: Record<string, string>): Record<string, string> {
  const published = units.find(({ endpoints }) => endpoints.length > 0)
  const [url] = published?.endpoints ?? []
  if (!published || !url) return outputs
  if (Object.hasOwn(outputs, 'URL')) {
    throw validation([
      { path: 'expose', message: 'the answer has the URL as outputs.URL: give the secret URL another name' },
    ])
  }
  return { ...outputs, URL: urlOf(app, published, url) }
}

function storedSpec({ spec, databasePorts }: PlannedUnit): StoredSpec {
  return {
    entrypoint: spec.entrypoint ?? null,
    cmd: spec.cmd ?? null,
    env: declaredEnv(spec.env),
    ports: spec.ports,
    databasePorts,
    expose: spec.expose ?? null,
    volume: spec.volume ?? null,
    files: declaredFiles(spec.files),
    healthcheck: spec.healthcheck ?? null,
    ...(spec.nested ? { nested: true } : {}),
  }
}
