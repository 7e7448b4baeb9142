// The environment of a unit: stored as declared, with its secrets encrypted separately, and rendered at each start
// (spec 2.3). A secret value from the caller belongs to the unit; a generated one belongs to the stack and its name,
// so that an application and its database share it (design 5). Of a brokered secret the unit has the placeholder.

import { randomBytes } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { App } from '../../../app.ts'
import { type Env, type EnvInput, isOwnSecret, teamSecretsOf } from '../../../contract/env.ts'
import type { SecretKey } from '../../../lib/crypto.ts'
import type { Database } from '../../../store/db.ts'
import { findUrl } from '../../../store/endpoints.ts'
import { insertSecrets, listSecrets, type SecretsTable } from '../../../store/secrets.ts'
import { listTeamSecretsOfUnit } from '../../../store/team-secrets.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { hostOf } from '../../endpoints/address.ts'
import { newPlaceholder, openSecret, requestsOf, sealSecret } from '../../egress/sealed-secrets.ts'
import { internalHost } from './names.ts'

/** Returns the environment as answers show it: secrets by name only, brokered ones with their hosts. */
export function declaredEnv(env: EnvInput): Env {
  const brokered = brokeredByName(env)
  return Object.fromEntries(
    Object.entries(env).map(([name, entry]) => {
      if (!isOwnSecret(entry)) return [name, entry]
      const { secret } = entry
      const { hosts, methods, paths } = brokered.get(secret) ?? {}
      if (!hosts) return [name, { secret }]
      return [name, { secret, hosts, ...requestsOf({ methods: methods ?? null, paths: paths ?? null }) }]
    }),
  )
}

type Brokered = {
  hosts: string[]
  methods: string[] | null
  paths: string[] | null
  placeholder: string | undefined
}

/** One secret may be in several variables, of which one gives its value and hosts. */
function brokeredByName(env: EnvInput): Map<string, Brokered> {
  const entries = Object.values(env).filter(isOwnSecret)
  return new Map(
    entries.flatMap(({ secret, hosts, methods = null, paths = null, placeholder }) =>
      hosts ? [[secret, { hosts, methods, paths, placeholder }] as const] : [],
    ),
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
  const secrets = Object.values(env).filter(isOwnSecret)
  if (secrets.length === 0) return {}
  const given = new Map(
    secrets.flatMap(({ secret, value }) => (value === undefined ? [] : [[secret, value] as const])),
  )
  const known = new Set((await listSecrets(db, [stackId])).map((row) => row.name))
  const missing = secrets.map(({ secret }) => secret).filter((name) => !given.has(name) && !known.has(name))
  const generated = new Map(missing.map((name) => [name, generateSecret()]))
  const brokered = brokeredByName(env)
  const placed = (name: string) => {
    const { placeholder = newPlaceholder(), ...rest } = brokered.get(name) ?? NOT_BROKERED
    return rest.hosts ? { ...rest, placeholder } : NOT_BROKERED
  }
  await insertSecrets(db, [
    ...[...given].map(([name, value]) =>
      sealSecret(key, { teamId, ownerId: unitId, name, value, ...placed(name) }),
    ),
    ...[...generated].map(([name, value]) =>
      sealSecret(key, { teamId, ownerId: stackId, name, value, ...NOT_BROKERED }),
    ),
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
    Object.values(env)
      .filter(isOwnSecret)
      .map(({ secret }) => secret),
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

/**
 * Returns the environment of the machine, with placeholders for brokered secrets. Values can be secret: they go to the
 * engine and nowhere else.
 */
export async function renderEnv(app: App, unit: UnitRecord): Promise<Record<string, string>> {
  const entries = Object.entries(unit.spec.env)
  const [secrets, placeholders] = await Promise.all([openSecrets(app, unit), readPlaceholders(app, unit)])
  const ownHost = usesOwnHost(unit.spec.env) ? await findOwnHost(app, unit) : null
  return Object.fromEntries(
    entries.flatMap(([name, entry]) => {
      if (typeof entry === 'string') return [[name, fillIn(entry, unit.stackName, ownHost)]]
      if (isOwnSecret(entry)) {
        const value = secrets.get(entry.secret)
        if (value === undefined) throw new Error(`the secret of ${unit.id} for ${name} is gone`)
        return [[name, value]]
      }
      // It may have been deleted since the record was read.
      const placeholder = placeholders.get(entry.teamSecret)
      return placeholder === undefined ? [] : [[name, placeholder]]
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
async function findOwnHost(app: App, unit: UnitRecord): Promise<string | null> {
  const url = await findUrl(app.db, unit.id)
  return url && hostOf(app, unit, url)
}

/** A placeholder stands for the value of a brokered secret. */
async function openSecrets(app: App, unit: UnitRecord): Promise<Map<string, string>> {
  if (!Object.values(unit.spec.env).some(isOwnSecret)) return new Map()
  const rows = await listSecrets(app.db, [unit.stackId, unit.id])
  // The unit's own secrets come last and override those of the stack.
  const ordered = rows.toSorted((a, b) => Number(a.owner_id === unit.id) - Number(b.owner_id === unit.id))
  return new Map(
    ordered.map((row) => [row.name, row.placeholder ?? openSecret(app.secretKey, unit.teamId, row)]),
  )
}

async function readPlaceholders(app: App, { id, spec }: UnitRecord): Promise<Map<string, string>> {
  if (teamSecretsOf(spec.env).length === 0) return new Map()
  const rows = await listTeamSecretsOfUnit(app.db, id)
  return new Map(rows.map(({ name, placeholder }) => [name, placeholder]))
}

/** Encrypted values can only be decrypted for their own team, owner and name. */
function sealAnew(key: SecretKey, teamId: string, row: SecretsTable, ownerId: string): SecretsTable {
  const { owner_id: _owner, sealed: _sealed, ...rest } = row
  return sealSecret(key, { ...rest, teamId, ownerId, value: openSecret(key, teamId, row) })
}

const NOT_BROKERED = { hosts: null, methods: null, paths: null, placeholder: null }

/** Only letters, digits, - and _, so that it can be part of a URL. */
export function generateSecret(): string {
  return randomBytes(24).toString('base64url')
}
