// PUT /v1/secrets/{name}: makes a secret of the team, or gives it another value and hosts. Units that bind it use the
// new ones from the answer on, without a restart: their placeholder stays.

import type { App } from '../../app.ts'
import { quotaExceeded, validation } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import { parse } from '../../contract/parse.ts'
import { type SecretAnswer, secretNameSchema, type SecretPut } from '../../contract/secret.ts'
import {
  listTeamSecrets,
  putTeamSecret,
  renewUnitsBinding,
  type TeamSecretsTable,
} from '../../store/team-secrets.ts'
import { authorize } from '../authorization/authorize.ts'
import type { Caller } from '../credentials/caller.ts'
import { applyAll } from '../egress/apply.ts'
import { newPlaceholder, sealTeamSecret } from '../egress/sealed-secrets.ts'
import { inLiveTeamTransaction } from '../transactions/transactions.ts'
import { checkBrokers, checkHosts } from './hosts.ts'
import { toSecret } from './to-secret.ts'

export async function putSecretOfTeam(
  app: App,
  caller: Caller,
  asked: string,
  { value, hosts, methods, paths, placeholder }: SecretPut,
): Promise<SecretAnswer> {
  authorize(caller, 'secret.put')
  const name = parse(secretNameSchema, asked, 'name')
  checkHosts(app, hosts, 'hosts')
  await checkBrokers(app, 'hosts')
  const { teamId } = caller
  const { row, ids } = await inLiveTeamTransaction(app, { teamId, once: null }, async (db) => {
    const all = await listTeamSecrets(db, teamId)
    const before = all.find((secret) => secret.name === name) ?? null
    if (before === null) checkRoom(all.length)
    const updatedAt = app.clock.now()
    const secret = {
      team_id: teamId,
      name,
      hosts,
      methods: methods ?? null,
      paths: paths ?? null,
      placeholder: placeholderFor(all, before, placeholder),
      sealed: sealTeamSecret(app.secretKey, { teamId, name, value }),
      created_at: before?.created_at ?? updatedAt,
      updated_at: updatedAt,
    }
    await putTeamSecret(db, secret)
    return { row: secret, ids: before === null ? [] : await renewUnitsBinding(db, { teamId, name }) }
  })
  await applyAll(app, ids)
  return { secret: toSecret(row, ids.length) }
}

function checkRoom(used: number): void {
  const max = limits.teamSecrets
  if (used < max) return
  throw quotaExceeded(`The team has ${used} secrets, and may have ${max}: delete one first.`, {
    field: 'secrets',
    used,
    max,
  })
}

/** It stays for the life of a secret, because it is in the environment of units that run. */
function placeholderFor(
  all: TeamSecretsTable[],
  before: TeamSecretsTable | null,
  asked: string | undefined,
): string {
  if (asked === undefined) return before?.placeholder ?? newPlaceholder()
  const wrong = (message: string) => validation([{ path: 'placeholder', message }])
  if (before !== null && asked !== before.placeholder) {
    throw wrong('cannot change, since units may have it: leave it out, or delete the secret first')
  }
  const other = all.find(({ name, placeholder }) => name !== before?.name && isAmbiguous(asked, placeholder))
  if (other) throw wrong(`is, contains or is part of the placeholder of the secret ${other.name}`)
  return asked
}

/** Whether one placeholder could be found in the other. */
export function isAmbiguous(one: string, other: string): boolean {
  return one.includes(other) || other.includes(one)
}
