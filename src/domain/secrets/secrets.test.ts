// Brokered secrets (decisions/brokered-secrets.md): what the machine holds, what the engine is told, and who may bind what.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  addKey,
  createBody,
  createTestDomain,
  makeUnit,
  type TestDomain,
} from '../../../test/support/domain.ts'
import { parse } from '../../contract/parse.ts'
import { secretPutSchema } from '../../contract/secret.ts'
import type { Unit } from '../../contract/unit.ts'
import { limits } from '../../contract/limits.ts'
import type { Policy } from '../../contract/policy.ts'
import type { Caller } from '../credentials/caller.ts'
import { applyDueEgress } from '../egress/apply.ts'
import { narrowUnits } from '../egress/narrow.ts'
import { forkUnit } from '../forks/fork-unit.ts'
import { createFromRecipe } from '../recipes/create.ts'
import { inTeamTransaction } from '../transactions/transactions.ts'
import { createUnits } from '../units/create.ts'
import { execInUnit } from '../units/exec.ts'
import { getUnit } from '../units/get.ts'
import { putSecretOfUnit } from '../units/secrets.ts'
import { startUnit } from '../units/start.ts'
import { stopUnit } from '../units/stop.ts'
import { deleteSecretOfTeam } from './delete.ts'
import { listSecretsOfTeam } from './list.ts'
import { putSecretOfTeam } from './put.ts'

let domain: TestDomain
let caller: Caller

beforeAll(async () => {
  domain = await createTestDomain()
})
beforeEach(async () => {
  caller = await domain.makeCaller({ allowedSecrets: ['*'] })
})
afterAll(async () => await domain.close())

const put = async (name = 'KEY', asked: object = {}, as = caller) => {
  const body = parse(secretPutSchema, { value: 'sk-1', hosts: ['api.example.com'], ...asked })
  return (await putSecretOfTeam(domain.app, as, name, body)).secret
}
const remove = async (name = 'KEY', as = caller) => await deleteSecretOfTeam(domain.app, as, name)
const list = async (as = caller) => (await listSecretsOfTeam(domain.app, as)).secrets
const keyWith = async (policy: Partial<Policy>) =>
  await addKey(domain.app, { ...caller, userId: caller.userId }, policy)
const brokered = ({ id }: Unit) => domain.engine.egressOf(id)?.secrets ?? []
const env = async ({ id }: Unit) => (await getUnit(domain.app, caller, id)).env
/** What a process of the machine sees. */
const inMachine = ({ id }: Unit) => domain.engine.envOf(id)
const own = { secret: 'KEY', value: 'sk-own', hosts: ['api.example.com'] }
const bound = { teamSecret: 'KEY' }
const refusal = { code: 'policy_violation', status: 402, details: { field: 'allowedSecrets' } }
const wait = { wait: true, waitTimeoutMs: 1000 }

describe('a secret of a unit with hosts', () => {
  it('is a placeholder in the unit, and a value with its hosts in the engine', async () => {
    const unit = await makeUnit(domain.app, caller, { env: { API_KEY: own, ALSO: { secret: 'KEY' } } })
    const shown = { secret: 'KEY', hosts: ['api.example.com'] }
    expect(unit.env).toEqual({ API_KEY: shown, ALSO: shown })
    const { API_KEY: placeholder, ALSO: also } = inMachine(unit)
    expect(placeholder).toMatch(/^berth_secret_[0-9a-f]{40}$/)
    expect(also).toBe(placeholder)
    expect(brokered(unit)).toEqual([
      { name: 'KEY', placeholder, value: 'sk-own', hosts: ['api.example.com'] },
    ])
  })

  it('may have the placeholder that its program expects', async () => {
    const placeholder = 'sk-ant-api03-0000000000'
    const unit = await makeUnit(domain.app, caller, { env: { API_KEY: { ...own, placeholder } } })
    expect(inMachine(unit)['API_KEY']).toBe(placeholder)
  })

  it('gets another value while the unit runs, without a restart, and keeps what is not named', async () => {
    const rules = { methods: ['POST'] as ['POST'], paths: ['/v1/*'] }
    const unit = await makeUnit(domain.app, caller, { env: { API_KEY: { ...own, ...rules }, PLAIN: 'x' } })
    const placeholder = inMachine(unit)['API_KEY'] ?? ''
    const asked = { value: 'sk-2', paths: null }
    const answer = await putSecretOfUnit(domain.app, caller, unit.id, 'KEY', asked)
    const kept = { hosts: own.hosts, methods: ['POST'] }
    expect(answer).toEqual({ name: 'KEY', placeholder, ...kept })
    expect(brokered(unit)).toEqual([{ name: 'KEY', placeholder, value: 'sk-2', ...kept }])
    expect(await env(unit)).toEqual({ API_KEY: { secret: 'KEY', ...kept }, PLAIN: 'x' })
    expect(domain.engine.machines().find(({ id }) => id === unit.id)?.generation).toBe(1)
    await stopUnit(domain.app, caller, unit.id)
    await putSecretOfUnit(domain.app, caller, unit.id, 'KEY', { value: 'sk-3', paths: ['/v2/*'] })
    await startUnit(domain.app, caller, unit.id)
    expect(brokered(unit)).toMatchObject([{ value: 'sk-3', ...kept, paths: ['/v2/*'] }])
  })

  it('cannot be replaced if the unit has it in its environment, has no such secret, or is of another team', async () => {
    const unit = await makeUnit(domain.app, caller, {
      env: { A: { secret: 'PLAIN', value: 'x' }, API_KEY: own },
    })
    const replace = async (name: string, asked: object = {}, as = caller) =>
      await putSecretOfUnit(domain.app, as, unit.id, name, { value: 'sk-2', ...asked })
    for (const name of ['PLAIN', 'NONE', 'é'])
      await expect(replace(name)).rejects.toMatchObject({ status: 404 })
    await expect(replace('KEY', {}, await domain.makeCaller())).rejects.toMatchObject({ status: 403 })
    await expect(replace('KEY', { hosts: ['x.internal'] })).rejects.toMatchObject({ status: 400 })
    const part = (inMachine(unit)['API_KEY'] ?? '').slice(0, 20)
    await expect(replace('KEY', { value: part })).rejects.toMatchObject({ status: 400 })
    expect(brokered(unit)).toMatchObject([{ value: 'sk-own' }])
  })

  it('a secret without hosts is in the environment, and the engine gets no secret to put into requests', async () => {
    const plain = { secret: 'KEY', value: 'plain' }
    const unit = await makeUnit(domain.app, caller, { env: { API_KEY: plain } })
    expect(unit.env).toEqual({ API_KEY: { secret: 'KEY' } })
    expect(inMachine(unit)['API_KEY']).toBe('plain')
    expect(domain.engine.egressOf(unit.id)).toBeNull()
  })

  it('keeps its placeholder over a stop and in a fork, which goes on with it', async () => {
    const unit = await makeUnit(domain.app, caller, { env: { API_KEY: own } })
    const placeholder = inMachine(unit)['API_KEY']
    await stopUnit(domain.app, caller, unit.id)
    await startUnit(domain.app, caller, unit.id)
    expect(inMachine(unit)['API_KEY']).toBe(placeholder)
    const [copy] = (await forkUnit(domain.app, caller, unit.id, wait)).units
    if (!copy) throw new Error('no copy')
    expect(copy.env).toEqual(unit.env)
    expect(inMachine(copy)['API_KEY']).toBe(placeholder)
    expect(brokered(copy)).toEqual(brokered(unit))
  })

  it('comes with a recipe too', async () => {
    const recipe = { recipe: 'debian', params: { env: { API_KEY: own } }, ...wait }
    const [unit] = (await createFromRecipe(domain.app, caller, recipe, null)).units
    if (!unit) throw new Error('no unit')
    expect(brokered(unit).map(({ name }) => name)).toEqual(['KEY'])
  })
})

describe('a secret of a team', () => {
  it('is bound by units as a placeholder, and no answer has its value', async () => {
    const { placeholder } = await put()
    const unit = await makeUnit(domain.app, caller, { env: { API_KEY: bound } })
    expect(unit.env).toEqual({ API_KEY: bound })
    expect(inMachine(unit)['API_KEY']).toBe(placeholder)
    expect(brokered(unit)).toEqual([{ name: 'KEY', placeholder, value: 'sk-1', hosts: ['api.example.com'] }])
    expect(await list()).toMatchObject([{ name: 'KEY', placeholder, units: 1, hosts: ['api.example.com'] }])
    expect(JSON.stringify([unit, await list()])).not.toContain('sk-1')
  })

  it('that gets another value and other hosts reaches the units that run, without a restart', async () => {
    const { placeholder, createdAt } = await put()
    const unit = await makeUnit(domain.app, caller, { env: { API_KEY: bound } })
    domain.clock.advance(1000)
    const again = await put('KEY', { value: 'sk-2', hosts: ['b.example.com'] })
    expect(again).toMatchObject({ placeholder, createdAt, units: 1 })
    expect(again.updatedAt > createdAt).toBe(true)
    expect(brokered(unit)).toEqual([{ name: 'KEY', placeholder, value: 'sk-2', hosts: ['b.example.com'] }])
    expect(domain.engine.machines().find(({ id }) => id === unit.id)?.generation).toBe(1)
  })

  it('that gets another value while the engine is away reaches it by the background job, also of a restarted server', async () => {
    await put()
    const unit = await makeUnit(domain.app, caller, { env: { API_KEY: bound } })
    domain.engine.fail('restrict', 'internal', { times: 1 })
    await put('KEY', { value: 'sk-2' })
    expect(brokered(unit).map(({ value }) => value)).toEqual(['sk-1'])
    await applyDueEgress(domain.restarted())
    expect(brokered(unit).map(({ value }) => value)).toEqual(['sk-2'])
  })

  it('that gets another value while the unit is stopped is in its next start', async () => {
    await put()
    const unit = await makeUnit(domain.app, caller, { env: { API_KEY: bound } })
    await stopUnit(domain.app, caller, unit.id)
    await put('KEY', { value: 'sk-2' })
    await startUnit(domain.app, caller, unit.id)
    expect(brokered(unit).map(({ value }) => value)).toEqual(['sk-2'])
  })

  it('that is deleted is taken from the units at once, which run on', async () => {
    await put()
    await put('OTHER')
    const variables = { A: bound, PLAIN: 'x', B: { teamSecret: 'OTHER' } }
    const unit = await makeUnit(domain.app, caller, { env: variables })
    expect(await remove()).toEqual({ ok: true, unbound: [{ id: unit.id, name: unit.name }] })
    expect(brokered(unit).map(({ name }) => name)).toEqual(['OTHER'])
    expect(Object.entries(await env(unit))).toEqual([
      ['PLAIN', 'x'],
      ['B', { teamSecret: 'OTHER' }],
    ])
    await put()
    expect(brokered(unit).map(({ name }) => name)).toEqual(['OTHER'])
    await stopUnit(domain.app, caller, unit.id)
    await startUnit(domain.app, caller, unit.id)
    expect(Object.keys(inMachine(unit)).toSorted()).toEqual(['B', 'PLAIN'])
    await expect(remove('NONE')).rejects.toMatchObject({ status: 404 })
  })

  it('of another team cannot be bound, listed, replaced or deleted', async () => {
    await put()
    const other = await domain.makeCaller({ allowedSecrets: ['*'] })
    const create = makeUnit(domain.app, other, { env: { API_KEY: bound } })
    await expect(create).rejects.toMatchObject({
      status: 400,
      details: [{ path: 'spec.env.API_KEY.teamSecret', message: 'the team has no secret "KEY"' }],
    })
    expect(await list(other)).toEqual([])
    await expect(remove('KEY', other)).rejects.toMatchObject({ status: 404 })
    await put('KEY', { value: 'of-another' }, other)
    const unit = await makeUnit(domain.app, caller, { env: { API_KEY: bound } })
    expect(brokered(unit).map(({ value }) => value)).toEqual(['sk-1'])
  })

  it('keeps its placeholder, which another secret cannot have', async () => {
    const placeholder = 'sk-ant-api03-0000000000'
    await put('KEY', { placeholder })
    const wrong = { status: 400, details: [{ path: 'placeholder' }] }
    await expect(put('KEY', { placeholder: `${placeholder}1` })).rejects.toMatchObject(wrong)
    await expect(put('OTHER', { placeholder: `${placeholder}1` })).rejects.toMatchObject(wrong)
    expect((await put('KEY', { placeholder })).placeholder).toBe(placeholder)
    const ambiguous = { A: bound, B: { ...own, placeholder: 'sk-ant-api03-00000000001' } }
    await expect(makeUnit(domain.app, caller, { env: ambiguous })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('placeholder'),
    })
  })

  it('is one of at most 256', async () => {
    const at = domain.clock.now()
    const filler = Array.from({ length: limits.teamSecrets }, (_, index) => ({
      team_id: caller.teamId,
      name: `FILLER_${index}`,
      hosts: ['api.example.com'],
      placeholder: `berth_secret_${index}_filler`,
      sealed: Buffer.from('x'),
      created_at: at,
      updated_at: at,
    }))
    await domain.app.db.insertInto('team_secrets').values(filler).execute()
    await expect(put()).rejects.toMatchObject({ status: 402, details: { field: 'secrets', max: 256 } })
    await expect(put('FILLER_3')).resolves.toMatchObject({ name: 'FILLER_3' })
  })
})

describe('a key', () => {
  it('binds only the secrets that its policy names, and lists no other', async () => {
    await put()
    await put('OTHER')
    const narrow = await keyWith({ allowedSecrets: ['KEY'] })
    expect((await list(narrow)).map(({ name }) => name)).toEqual(['KEY'])
    const unit = await makeUnit(domain.app, narrow, { env: { A: bound } })
    expect(brokered(unit)).toHaveLength(1)
    const other = makeUnit(domain.app, narrow, { name: 'x', env: { A: { teamSecret: 'OTHER' } } })
    await expect(other).rejects.toMatchObject({
      ...refusal,
      details: { asked: ['OTHER'], allowed: ['KEY'] },
      message: expect.stringContaining('OTHER'),
    })
  })

  it('a key without allowed secrets cannot use, start or fork a unit that has one', async () => {
    await put()
    const unit = await makeUnit(domain.app, caller, { env: { A: bound } })
    const none = await keyWith({})
    const exec = execInUnit(domain.app, none, unit.id, { cmd: ['true'], timeoutMs: 1000 })
    await expect(exec).rejects.toMatchObject(refusal)
    await expect(forkUnit(domain.app, none, unit.id, wait)).rejects.toMatchObject(refusal)
    await stopUnit(domain.app, caller, unit.id)
    await expect(startUnit(domain.app, none, unit.id)).rejects.toMatchObject(refusal)
  })

  it('that may bind a secret puts and deletes none', async () => {
    await put()
    const narrow = await keyWith({ allowedSecrets: ['KEY'] })
    await expect(put('KEY', {}, narrow)).rejects.toMatchObject({ status: 403 })
    await expect(remove('KEY', narrow)).rejects.toMatchObject({ status: 403 })
  })

  it('whose policy becomes narrower loses the secrets in its units at once', async () => {
    await put()
    await put('OTHER')
    const unit = await makeUnit(domain.app, caller, { env: { A: bound, B: { teamSecret: 'OTHER' } } })
    const { teamId, credentialId: heldBy } = caller
    const narrowed = await inTeamTransaction(domain.app, teamId, (db) =>
      narrowUnits(domain.app, db, { teamId, heldBy }, { allowedSecrets: ['OTHER'] }),
    )
    expect(narrowed).toEqual([{ id: unit.id, name: unit.name }])
    await applyDueEgress(domain.app)
    expect(brokered(unit).map(({ name }) => name)).toEqual(['OTHER'])
    expect(await env(unit)).toEqual({ B: { teamSecret: 'OTHER' } })
  })
})

describe('rules of egress', () => {
  const listed = (...allow: string[]) => ({ mode: 'listed', allow })

  it('are not widened by a secret: one whose hosts they do not allow is refused with a sentence', async () => {
    await put()
    for (const [variable, field] of [
      [bound, 'teamSecret'],
      [own, 'hosts'],
    ] as const) {
      const spec = { env: { A: variable }, egress: listed('other.example.com') }
      await expect(makeUnit(domain.app, caller, spec)).rejects.toMatchObject({
        status: 400,
        details: [
          {
            path: `spec.env.A.${field}`,
            message: expect.stringContaining('add api.example.com to "egress.allow"'),
          },
        ],
      })
    }
  })

  it('that allow one of the hosts of a secret allow it', async () => {
    await put('KEY', { hosts: ['api.example.com', 'b.example.com'] })
    const spec = { env: { A: bound }, egress: listed('*.example.com:443') }
    expect(brokered(await makeUnit(domain.app, caller, spec))).toHaveLength(1)
  })
})

it('secrets are refused where the engine does not put them into requests', async () => {
  const capabilities = await domain.engine.capabilities()
  const without = { ...domain.engine, capabilities: async () => ({ ...capabilities, brokersSecrets: false }) }
  const hosts = domain.app.fleet.hosts().map((host) => ({ ...host, engine: without }))
  const app = { ...domain.app, fleet: { ...domain.app.fleet, hosts: () => hosts } }
  const message = expect.stringContaining('does not put secrets into requests')
  await expect(createUnits(app, caller, createBody({ env: { A: own } }))).rejects.toMatchObject({ message })
  await expect(
    putSecretOfTeam(app, caller, 'KEY', { value: 'x', hosts: ['api.example.com'] }),
  ).rejects.toMatchObject({ message })
})
