// The part of a create that is decided in one transaction: whether the caller may, and what row it gets. The
// team is locked meanwhile, so that fifty creates at once cannot all be the fifth of five.

import { z } from 'zod'
import type { App } from '../../app.ts'
import type { Create } from '../../contract/create.ts'
import { conflict, validation } from '../../contract/errors.ts'
import type { UnitSpec } from '../../contract/unit-spec.ts'
import type { IsolationClass } from '../../engine/engine.ts'
import { newId } from '../../lib/ids.ts'
import { insertEndpoint } from '../../store/endpoints.ts'
import type { StoredSpec, UnitRecord } from '../../store/unit-record.ts'
import { findUnitOfAnyTeam, insertUnit, unitNameTaken } from '../../store/units.ts'
import { checkAffordable } from '../billing/afford.ts'
import type { Caller } from '../credentials/caller.ts'
import { urlOf } from '../endpoints/address.ts'
import { frontDoor } from '../endpoints/choose.ts'
import { newEndpoint } from '../endpoints/name.ts'
import type { Once } from '../idempotency/once.ts'
import { type Bounds, checkConcurrency, checkSleep, checkUnit, defaultSleep } from '../policies/check.ts'
import { lockLiveTeam } from '../teams/lock.ts'
import { waitForRoom } from './admission.ts'
import { declaredFiles, keepBootFiles } from './boot-files.ts'
import { boundsOf, currentBounds, registryOf } from './bounds.ts'
import { declaredEnv, keepSecrets } from './env.ts'
import { engineAway } from './failures.ts'
import { stackFor } from './stack-for.ts'

export type Reservation = {
  unit: UnitRecord
  /** Secrets generated for it, shown this once, and its URL. */
  outputs: Record<string, string>
}

/** What a create with a key keeps for its answer, should the call itself break off. */
export const keptOfCreateSchema = z.object({ unitId: z.string(), outputs: z.record(z.string(), z.string()) })

/** A unit in `creating`, or a refusal: policy and plan, concurrency, or a name that is taken. */
export async function reserveUnit(
  app: App,
  caller: Caller,
  { spec, stack, expose }: Create,
  once: Once | null,
): Promise<Reservation> {
  checkedSleep(app, boundsOf(app, caller), spec)
  const published = expose && { mode: expose, port: frontDoor(spec), protocol: 'http' as const }
  const isolation = await defaultClass(app)
  await waitForRoom(app, caller.teamId)
  return await app.db.transaction().execute(async (db) => {
    await once?.claim(db)
    await lockLiveTeam(db, caller.teamId)
    const { bounds, live } = await currentBounds(app, db, caller)
    const sleep = checkedSleep(app, bounds, spec)
    checkConcurrency(bounds.policy, live)
    await checkAffordable(app, db, caller, [spec.size])
    const { id: stackId, sleep: stackSleep } = await stackFor(app, db, caller.teamId, {
      stack,
      unitName: spec.name,
    })
    if (await unitNameTaken(db, { stackId, name: spec.name })) {
      throw conflict(`The stack already has a unit named "${spec.name}"; destroy it or choose another name.`)
    }
    const together = spec.sleep === undefined ? stackSleep : null
    if (together !== null) checkSleep(bounds, together)
    const unitId = newId('unit')
    const { teamId } = caller
    await insertUnit(db, {
      id: unitId,
      team_id: teamId,
      stack_id: stackId,
      name: spec.name,
      image: spec.image,
      size: spec.size,
      spec: storedSpec(spec),
      isolation,
      network_group: caller.networkGroup,
      address: null,
      held_by: caller.credentialId,
      state: 'creating',
      generation: 1,
      stopped_reason: null,
      frozen: false,
      progress: null,
      sleep: together ?? sleep,
      sleeps_together: together !== null,
      sleeps_at: null,
      last_used_at: null,
      created_at: app.clock.now(),
      changed_at: app.clock.now(),
      started_at: null,
      last_exit: null,
      error: null,
      destroys_at: null,
      forked_from: null,
    })
    await keepBootFiles(db, app.secretKey, { teamId, unitId }, spec.files)
    const secrets = await keepSecrets(db, app.secretKey, { teamId, stackId, unitId }, spec.env)
    if (published) {
      const owner = { id: unitId, teamId, name: spec.name }
      await insertEndpoint(db, newEndpoint(app.secretKey, owner, { ...published, at: app.clock.now() }))
    }
    const unit = await findUnitOfAnyTeam(db, { id: unitId, now: app.clock.now() })
    if (!unit) throw new Error('a unit was not there right after it was inserted')
    const outputs = withUrl(app, unit, secrets)
    await once?.keep(db, { unitId, outputs } satisfies z.infer<typeof keptOfCreateSchema>)
    return { unit, outputs }
  })
}

/** The URL beside the secrets generated for the unit (spec 2.5); one name cannot mean both. */
function withUrl(app: App, unit: UnitRecord, secrets: Record<string, string>): Record<string, string> {
  const [url] = unit.endpoints
  if (!url) return secrets
  if (Object.hasOwn(secrets, 'URL')) {
    throw validation([
      { path: 'expose', message: 'the answer has the URL as outputs.URL: call the secret URL otherwise' },
    ])
  }
  return { ...secrets, URL: urlOf(app, unit.teamId, url) }
}

async function defaultClass(app: App): Promise<IsolationClass> {
  try {
    return (await app.engine.capabilities()).defaultClass
  } catch (error) {
    throw engineAway(error)
  }
}

function checkedSleep(app: App, bounds: Bounds, { size, image, sleep: asked }: UnitSpec): string {
  const sleep = asked ?? defaultSleep(bounds, app.config.sleepDefault)
  checkUnit(bounds, { size, registry: registryOf(image), sleep })
  return sleep
}

function storedSpec(spec: UnitSpec): StoredSpec {
  return {
    entrypoint: spec.entrypoint ?? null,
    cmd: spec.cmd ?? null,
    env: declaredEnv(spec.env),
    ports: spec.ports,
    databasePorts: [],
    expose: spec.expose ?? null,
    volume: spec.volume ?? null,
    files: declaredFiles(spec.files),
    healthcheck: spec.healthcheck ?? null,
  }
}
