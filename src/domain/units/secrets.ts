// PUT /v1/units/{id}/secrets/{name}: gives a brokered secret of a unit another value, hosts and requests. The unit uses them
// from the answer on, without a restart: its placeholder stays.

import type { App } from '../../app.ts'
import { isOwnSecret } from '../../contract/env.ts'
import { notFound, validation } from '../../contract/errors.ts'
import type { UnitSecret, UnitSecretPut } from '../../contract/secret.ts'
import { isTransitional } from '../../contract/states.ts'
import { listSecrets, replaceSecret, type SecretsTable } from '../../store/secrets.ts'
import { setEnv } from '../../store/team-secrets.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { findUnit, lockUnit } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import { applyEgress } from '../egress/apply.ts'
import { requestsOf, sealSecret } from '../egress/sealed-secrets.ts'
import { inTeamTransaction } from '../transactions/transactions.ts'
import { getRecord } from './get.ts'
import { engineFailure, notPossibleNow } from './lifecycle/failures.ts'
import { retryOnConflict } from './lifecycle/retry-on-conflict.ts'
import { waitUntilStable } from './lifecycle/wait-until-stable.ts'
import { checkBindings } from '../secrets/bind.ts'
import { checkHosts } from '../secrets/hosts.ts'

const REFUSED = 'its secrets cannot be replaced'

/** Resolves once the unit's requests have the new value. Throws `not_found`, `validation` and `invalid_state`. */
export async function putSecretOfUnit(
  app: App,
  caller: Caller,
  id: string,
  name: string,
  asked: UnitSecretPut,
): Promise<UnitSecret> {
  await getRecord(app, caller, id)
  checkHosts(app, asked.hosts ?? [], 'hosts')
  const written = await retryOnConflict(async () => await write(app, caller, id, name, asked))
  const unit = await getRecord(app, caller, id)
  if (written === null) throw notPossibleNow(unit, REFUSED)
  try {
    await applyEgress(app, id)
  } catch (error) {
    throw engineFailure(error, unit)
  }
  return written
}

/** Null if the unit has changed state meanwhile. */
async function write(
  app: App,
  caller: Caller,
  id: string,
  name: string,
  { value, ...asked }: UnitSecretPut,
): Promise<UnitSecret | null> {
  const found = await waitUntilStable(app, caller, id)
  if (!isSettable(found)) throw notPossibleNow(found, REFUSED)
  const { teamId } = found
  const written = await inTeamTransaction(app, teamId, async (db) => {
    await lockUnit(db, id)
    const unit = await findUnit(db, { teamId, id, now: app.clock.now() })
    if (!unit || !isSettable(unit)) return null
    const row = (await listSecrets(db, [id])).find((each) => each.name === name)
    const placeholder = row?.placeholder
    if (!row?.hosts || !placeholder) throw notFound('secret', name)
    if (placeholder.includes(value)) {
      throw validation([{ path: 'value', message: 'must not be a part of the placeholder' }])
    }
    const { hosts = row.hosts, methods = row.methods, paths = row.paths } = asked
    const env = withRequests(unit, name, { hosts, methods, paths })
    const bound = { [name]: { secret: name, hosts, placeholder } }
    await checkBindings(db, teamId, { env: bound, egress: unit.egress })
    await replaceSecret(
      db,
      sealSecret(app.secretKey, { teamId, ownerId: id, name, value, hosts, methods, paths, placeholder }),
    )
    await setEnv(db, unit, env)
    return { name, hosts, ...requestsOf({ methods, paths }), placeholder }
  })
  // A frozen machine is not to be thawed by an older record.
  app.activity.forgetFrozen([id])
  return written
}

type Placed = Pick<SecretsTable, 'methods' | 'paths'> & { hosts: string[] }

/** The environment as answers show it, with what the secret is for from now on. */
function withRequests({ spec }: UnitRecord, name: string, { hosts, ...requests }: Placed) {
  return Object.fromEntries(
    Object.entries(spec.env).map(([variable, entry]) =>
      isOwnSecret(entry) && entry.secret === name
        ? [variable, { secret: name, hosts, ...requestsOf(requests) }]
        : [variable, entry],
    ),
  )
}

function isSettable({ state }: UnitRecord): boolean {
  return !isTransitional(state) && state !== 'error' && state !== 'destroyed'
}
