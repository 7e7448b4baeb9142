// The environment of a unit: stored as declared, with its secrets encrypted separately, and rendered at each start
// (spec 2.3). A secret value from the caller belongs to the unit; a generated one belongs to the stack and its name,
// so that an application and its database share it (design 5).

import { randomBytes } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { App } from '../../../app.ts'
import type { Env, EnvInput } from '../../../contract/env.ts'
import type { SecretKey } from '../../../lib/crypto.ts'
import type { Database } from '../../../store/db.ts'
import { findUrl } from '../../../store/endpoints.ts'
import { insertSecrets, listSecrets, type SecretsTable } from '../../../store/secrets.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { hostOf } from '../../endpoints/address.ts'
import { internalHost } from './names.ts'

/** Returns the environment as answers show it: secrets by name only. */
export function declaredEnv(env: EnvInput): Env {
  return Object.fromEntries(
    Object.entries(env).map(([name, entry]) => [
      name,
      typeof entry === 'string' ? entry : { secret: entry.secret },
    ]),
  )
}

type Owner = { teamId: string; stackId: string; unitId: string }

/** Encrypts the secrets of a new unit. Returns the newly generated ones by name: they are shown only once. */
export async function keepSecrets(
  db: Kysely<Database>,
  key: SecretKey,
  { teamId, stackId, unitId }: Owner,
  env: EnvInput,
): Promise<Record<string, string>> {
  const secrets = Object.values(env).filter((entry) => typeof entry !== 'string')
  if (secrets.length === 0) return {}
  const given = new Map(
    secrets.flatMap(({ secret, value }) => (value === undefined ? [] : [[secret, value] as const])),
  )
  const known = new Set((await listSecrets(db, [stackId])).map((row) => row.name))
  const missing = secrets.map(({ secret }) => secret).filter((name) => !given.has(name) && !known.has(name))
  const generated = new Map(missing.map((name) => [name, generateSecret()]))
  await insertSecrets(db, [
    ...[...given].map(([name, value]) => sealSecret(key, teamId, unitId, name, value)),
    ...[...generated].map(([name, value]) => sealSecret(key, teamId, stackId, name, value)),
  ])
  return Object.fromEntries(generated)
}

/**
 * Gives a copy the secrets of its source, since the copied disk depends on them: the unit's own, and those generated
 * for the stack unless the copy's stack has them already.
 */
export async function copySecrets(
  db: Kysely<Database>,
  key: SecretKey,
  { from, to, env, isShared }: { from: Owner; to: Owner; env: Env; isShared: boolean },
): Promise<void> {
  const used = new Set(
    Object.values(env).flatMap((entry) => (typeof entry === 'string' ? [] : [entry.secret])),
  )
  if (used.size === 0) return
  const own = await listSecrets(db, [from.unitId])
  const shared = isShared ? [] : await listSecrets(db, [from.stackId])
  const needed = shared.filter(({ name }) => used.has(name) && !own.some((other) => other.name === name))
  await insertSecrets(
    db,
    [...own, ...needed].map((row) => sealAnew(key, to.teamId, row, to.unitId)),
  )
}

/** Copies the secrets of a stack, for the databases in its copy. */
export async function copyStackSecrets(
  db: Kysely<Database>,
  key: SecretKey,
  { teamId, from, to }: { teamId: string; from: string; to: string },
): Promise<void> {
  const rows = await listSecrets(db, [from])
  await insertSecrets(
    db,
    rows.map((row) => sealAnew(key, teamId, row, to)),
  )
}

/** Returns the environment of the machine. Values can be secret: they go to the engine and nowhere else. */
export async function renderEnv(app: App, unit: UnitRecord): Promise<Record<string, string>> {
  const entries = Object.entries(unit.spec.env)
  const needsSecrets = entries.some(([, entry]) => typeof entry !== 'string')
  const secrets = needsSecrets ? await openSecrets(app, unit) : new Map<string, string>()
  const ownHost = usesOwnHost(unit.spec.env) ? await findOwnHost(app, unit) : null
  return Object.fromEntries(
    entries.map(([name, entry]) => {
      if (typeof entry === 'string') return [name, fillIn(entry, unit.stackName, ownHost)]
      const value = secrets.get(entry.secret)
      if (value === undefined) throw new Error(`the secret of ${unit.id} for ${name} is gone`)
      return [name, value]
    }),
  )
}

/**
 * Replaces `{{unit:NAME}}` by the address of a unit of the same stack, and `{{self:host}}` by the host of the unit's
 * own URL, or `localhost` without one. One pass: inserted text is not expanded again.
 */
function fillIn(value: string, stackName: string, ownHost: string | null): string {
  return value.replace(PLACEHOLDER, (_all, name?: string) =>
    name === undefined ? (ownHost ?? 'localhost') : internalHost(name, stackName),
  )
}

/** Returns the names of the units whose addresses the environment uses. */
export function peersOf(env: Env): string[] {
  const values = Object.values(env).filter((entry) => typeof entry === 'string')
  const named = values.flatMap((value) => [...value.matchAll(PLACEHOLDER)].map(([, name]) => name))
  return [...new Set(named)].filter((name) => name !== undefined)
}

const PLACEHOLDER = /\{\{(?:unit:([a-z0-9]+(?:-[a-z0-9]+)*)|self:host)\}\}/g

/** Whether the environment uses the host of the unit's URL. */
export function usesOwnHost(env: Env): boolean {
  return Object.values(env).some((entry) => typeof entry === 'string' && entry.includes('{{self:host}}'))
}

/** Read at each start: the caller's record may be older than the URL. */
async function findOwnHost(app: App, { id, teamId }: UnitRecord): Promise<string | null> {
  const url = await findUrl(app.db, id)
  return url && hostOf(app, teamId, url)
}

async function openSecrets(app: App, unit: UnitRecord): Promise<Map<string, string>> {
  const rows = await listSecrets(app.db, [unit.stackId, unit.id])
  // The unit's own secrets come last and override those of the stack.
  const ordered = rows.toSorted((a, b) => Number(a.owner_id === unit.id) - Number(b.owner_id === unit.id))
  return new Map(
    ordered.map((row) => [
      row.name,
      app.secretKey.open(row.sealed, context(unit.teamId, row.owner_id, row.name)).toString(),
    ]),
  )
}

/** Encrypted values can only be decrypted for their own team, owner and name. */
function sealAnew(key: SecretKey, teamId: string, row: SecretsTable, ownerId: string): SecretsTable {
  const value = key.open(row.sealed, context(teamId, row.owner_id, row.name))
  return sealSecret(key, teamId, ownerId, row.name, value.toString())
}

function sealSecret(
  key: SecretKey,
  teamId: string,
  ownerId: string,
  name: string,
  value: string,
): SecretsTable {
  const sealed = key.seal(Buffer.from(value), context(teamId, ownerId, name))
  return { owner_id: ownerId, name, sealed }
}

function context(teamId: string, ownerId: string, name: string): string[] {
  return ['secret', teamId, ownerId, name]
}

/** Only letters, digits, - and _, so that it can be part of a URL. */
export function generateSecret(): string {
  return randomBytes(24).toString('base64url')
}
