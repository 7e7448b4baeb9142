// The rules of units under the bounds of keys and teams (decisions/egress.md): no call leaves a unit with more than they
// allow.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { addKey, createTestDomain, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import { egressAskedSchema } from '../../contract/egress.ts'
import { parse } from '../../contract/parse.ts'
import type { Unit } from '../../contract/unit.ts'
import { type EgressRules, isWithin, openEgress } from '../../lib/egress/rules.ts'
import { changeTeam } from '../../store/teams.ts'
import type { Caller } from '../credentials/caller.ts'
import { forkUnit } from '../forks/fork-unit.ts'
import { createFromRecipe } from '../recipes/create.ts'
import { inTeamTransaction } from '../transactions/transactions.ts'
import { execInUnit } from './exec.ts'
import { getUnit } from './get.ts'
import { startUnit } from './start.ts'
import { stopUnit } from './stop.ts'
import { applyDueEgress } from '../egress/apply.ts'
import { narrowUnits } from '../egress/narrow.ts'
import { checkUnitEgress, getUnitEgress, setUnitEgress } from './egress.ts'

let domain: TestDomain
let caller: Caller

beforeAll(async () => {
  domain = await createTestDomain()
})
beforeEach(async () => {
  caller = await domain.makeCaller()
})
afterAll(async () => await domain.close())

const npm: EgressRules = { mode: 'listed', allow: ['preset:npm'], siblings: 'stack' }
const set = async (unit: Unit, asked: object, as = caller) =>
  await setUnitEgress(domain.app, as, unit.id, parse(egressAskedSchema, asked))
const keyWith = async (egress: EgressRules) =>
  await addKey(domain.app, { ...caller, userId: caller.userId }, { egress })
const engineHas = ({ id }: Unit) => domain.engine.egressOf(id)
const refusal = { code: 'policy_violation', status: 402, details: { field: 'egress' } }

describe('the rules of a unit', () => {
  it('are none unless a caller asks for some, and the engine is told of none', async () => {
    const unit = await makeUnit(domain.app, caller)
    expect(unit.egress).toEqual({ ...openEgress, version: 0 })
    expect(engineHas(unit)).toBeNull()
    expect(await getUnitEgress(domain.app, caller, unit.id)).toMatchObject({ appliedAt: unit.createdAt })
  })

  it('are stated by its first start, in the form in which they are compared', async () => {
    const asked = parse(egressAskedSchema, { mode: 'listed', allow: ['API.GitHub.com.', 'api.github.com'] })
    const unit = await makeUnit(domain.app, caller, { egress: asked })
    expect(unit.egress).toEqual({ mode: 'listed', allow: ['api.github.com'], siblings: 'team', version: 1 })
    expect(engineHas(unit)).toEqual({
      mode: 'listed',
      allow: ['api.github.com'],
      siblings: 'team',
      stack: unit.stackId,
      secrets: [],
    })
    expect((await getUnitEgress(domain.app, caller, unit.id)).appliedAt).not.toBeNull()
  })

  it('are replaced while it runs, and the answer says what they were', async () => {
    const unit = await makeUnit(domain.app, caller)
    const answer = await set(unit, npm)
    expect(answer).toMatchObject({ ...npm, version: 1, previous: openEgress, appliedAt: expect.any(String) })
    expect(engineHas(unit)).toEqual({ ...npm, stack: unit.stackId, secrets: [] })
    expect((await set(unit, npm)).version).toBe(1)
    expect(await set(unit, { mode: 'open', siblings: 'team' })).toMatchObject({ version: 2, previous: npm })
  })

  it('outlive a stop, and are stated by the next start', async () => {
    const unit = await makeUnit(domain.app, caller)
    await stopUnit(domain.app, caller, unit.id)
    await set(unit, npm)
    await startUnit(domain.app, caller, unit.id)
    expect(engineHas(unit)).toEqual({ ...npm, stack: unit.stackId, secrets: [] })
  })

  it('are told again by the background job after the engine was away', async () => {
    const unit = await makeUnit(domain.app, caller)
    domain.engine.fail('restrict', 'internal', { times: 1 })
    await expect(set(unit, npm)).rejects.toMatchObject({ status: 502 })
    expect(await getUnitEgress(domain.app, caller, unit.id)).toMatchObject({ ...npm, appliedAt: null })
    await applyDueEgress(domain.restarted())
    expect(engineHas(unit)).toEqual({ ...npm, stack: unit.stackId, secrets: [] })
    expect((await getUnitEgress(domain.app, caller, unit.id)).appliedAt).not.toBeNull()
  })

  it('that are set at the same time end with the newest in the engine', async () => {
    const unit = await makeUnit(domain.app, caller)
    const asked = Array.from({ length: 8 }, (_, at) => ({ mode: 'listed', allow: [`h${at}.example.com`] }))
    await Promise.all(asked.map((rules) => set(unit, rules)))
    const last = await getUnitEgress(domain.app, caller, unit.id)
    expect(last.version).toBe(8)
    expect(engineHas(unit)?.allow).toEqual(last.allow)
  })

  it('that keep it to its stack tell the engine the stack of every unit in it', async () => {
    const [one, other] = [
      await makeUnit(domain.app, caller, { name: 'one' }, { stack: 'shop' }),
      await makeUnit(domain.app, caller, { name: 'other' }, { stack: 'shop' }),
    ]
    await set(one, { siblings: 'stack' })
    expect(engineHas(other)).toEqual({ ...openEgress, stack: one.stackId, secrets: [] })
    const later = await makeUnit(domain.app, caller, { name: 'later' }, { stack: 'shop' })
    expect(engineHas(later)?.stack).toBe(one.stackId)
  })

  it('say what would become of a connection, and which entry is missing', async () => {
    const unit = await makeUnit(domain.app, caller, { egress: npm })
    const check = async (host: string, port: number) =>
      await checkUnitEgress(domain.app, caller, unit.id, { host, port })
    expect(await check('registry.npmjs.org', 443)).toMatchObject({
      decision: 'allowed',
      rule: 'registry.npmjs.org',
    })
    expect(await check('evil.example.com', 22)).toMatchObject({
      decision: 'refused',
      reason: expect.stringContaining('evil.example.com:22'),
    })
    expect(await check('10.0.0.1', 443)).toMatchObject({ decision: 'refused' })
    for (const name of ['other.internal', 'Other.Shop.Internal.'])
      expect((await check(name, 80)).reason).toContain('change "siblings"')
    await set(unit, { mode: 'none' })
    expect((await check('a.example.com', 22)).reason).toContain('"listed", with a.example.com:22 in "allow"')
  })
})

describe('the bound of a key', () => {
  it('is what its units get, and refuses a create, a set and a fork that ask for more', async () => {
    const bound = await keyWith(npm)
    const unit = await makeUnit(domain.app, bound, { name: 'bound' })
    expect(unit.egress).toMatchObject(npm)
    const wide = await makeUnit(domain.app, caller, { name: 'wide' })
    const asked = parse(egressAskedSchema, { mode: 'open' })
    await expect(makeUnit(domain.app, bound, { name: 'x', egress: asked })).rejects.toMatchObject(refusal)
    await expect(set(unit, { mode: 'listed', allow: ['evil.example.com'] }, bound)).rejects.toMatchObject({
      ...refusal,
      message: expect.stringContaining('evil.example.com'),
    })
    const fork = { wait: true, waitTimeoutMs: 1000 }
    await expect(forkUnit(domain.app, bound, wide.id, fork)).rejects.toMatchObject(refusal)
    const [copy] = (await forkUnit(domain.app, bound, unit.id, fork)).units
    expect(copy?.egress).toMatchObject(npm)
    expect((await getUnitEgress(domain.app, bound, copy?.id ?? '')).appliedAt).not.toBeNull()
  })

  it('refuses the use and the start of a unit that may reach more', async () => {
    const bound = await keyWith(npm)
    const wide = await makeUnit(domain.app, caller)
    const exec = { cmd: ['true'], timeoutMs: 1000 }
    await expect(execInUnit(domain.app, bound, wide.id, exec)).rejects.toMatchObject({
      ...refusal,
      message: expect.stringMatching(/^This unit reaches .*Use a unit that reaches no more/),
    })
    await stopUnit(domain.app, caller, wide.id)
    await expect(startUnit(domain.app, bound, wide.id)).rejects.toMatchObject(refusal)
  })

  it('holds for a unit that runs for it, also for rules that another caller sets', async () => {
    const bound = await keyWith(npm)
    const unit = await makeUnit(domain.app, bound)
    await expect(set(unit, { mode: 'open', siblings: 'team' })).rejects.toMatchObject(refusal)
    expect(await set(unit, { mode: 'none', siblings: 'none' })).toMatchObject({ mode: 'none' })
  })

  it('without siblings refuses a recipe of several units with a sentence, and with those of the stack allows it', async () => {
    const recipe = {
      recipe: 'web-with-postgres',
      params: { files: { 'main.js': '' } },
      wait: false,
      waitTimeoutMs: 0,
    }
    const alone = await keyWith({ ...npm, siblings: 'none' })
    const inStack = await keyWith(npm)
    await expect(createFromRecipe(domain.app, alone, recipe, null)).rejects.toMatchObject({
      ...refusal,
      message: expect.stringContaining('reach each other'),
    })
    const { units } = await createFromRecipe(domain.app, inStack, recipe, null)
    expect(units.map(({ egress }) => egress.siblings)).toEqual(units.map(() => 'stack'))
  })

  it('that becomes narrower narrows the units that it holds, and tells the engine', async () => {
    const unit = await makeUnit(domain.app, caller)
    const { teamId, credentialId: heldBy } = caller
    const narrowed = await inTeamTransaction(domain.app, teamId, (db) =>
      narrowUnits(domain.app, db, { teamId, heldBy }, { egress: npm }),
    )
    expect(narrowed).toEqual([{ id: unit.id, name: unit.name }])
    await applyDueEgress(domain.app)
    expect((await getUnit(domain.app, caller, unit.id)).egress).toMatchObject(npm)
    expect(engineHas(unit)).toEqual({ ...npm, stack: unit.stackId, secrets: [] })
  })
})

it('the bound of a team holds beside that of the key', async () => {
  await changeTeam(domain.app.db, { id: caller.teamId, egress: { ...npm, siblings: 'team' } })
  const unit = await makeUnit(domain.app, caller)
  expect(unit.egress).toMatchObject({ ...npm, siblings: 'team' })
  await expect(set(unit, { mode: 'open' })).rejects.toMatchObject(refusal)
})

// All of them by all of them: that takes a while on a busy machine.
it('no create, fork or set leaves a unit beyond the bounds of its key and its team', {
  timeout: 180_000,
}, async () => {
  const samples: EgressRules[] = [
    openEgress,
    npm,
    { mode: 'none', allow: [], siblings: 'none' },
    { mode: 'listed', allow: ['*.example.com', '198.51.100.0/24:25'], siblings: 'team' },
    { mode: 'listed', allow: ['a.example.com:443', 'preset:github'], siblings: 'none' },
    { mode: 'open', allow: [], siblings: 'stack' },
  ]
  const pick = (seed: number) => samples[seed % samples.length] ?? openEgress
  const quiet = async <T>(work: Promise<T>) => await work.catch(() => null)
  for (let seed = 0; seed < 36; seed += 1) {
    const [ofKey, ofTeam] = [pick(seed), pick(Math.floor(seed / 6))]
    const owner = await domain.makeCaller({ egress: ofKey })
    await changeTeam(domain.app.db, { id: owner.teamId, egress: ofTeam })
    const made = await Promise.all(
      samples.map((egress, at) => quiet(makeUnit(domain.app, owner, { name: `u${at}`, egress }))),
    )
    const one = await makeUnit(domain.app, owner, { name: 'one' })
    await Promise.all(samples.map((rules) => quiet(set(one, rules, owner))))
    const forked = await quiet(forkUnit(domain.app, owner, one.id, { wait: true, waitTimeoutMs: 1000 }))
    const units = [...made, one, ...(forked?.units ?? [])].filter((unit) => unit !== null)
    for (const { id } of units) {
      const { egress } = await getUnit(domain.app, owner, id)
      expect(isWithin(egress, ofKey) && isWithin(egress, ofTeam)).toBe(true)
    }
  }
})

describe('rules that are asked for', () => {
  const fault = (asked: object): string => {
    try {
      parse(egressAskedSchema, asked, 'egress')
      return ''
    } catch (error) {
      return error instanceof Error ? error.message : ''
    }
  }

  it.each([
    [{ allow: ['a.example.com'] }, 'egress.allow: is for the mode "listed"'],
    [{ mode: 'open', allow: ['a.example.com'] }, 'egress.allow: says nothing in the mode "open"'],
    [{ mode: 'listed' }, 'egress.allow: is required'],
    [{ mode: 'listed', allow: ['ok.example.com', 'a b'] }, 'egress.allow.1: must be a name'],
    [{ mode: 'listed', allow: ['203.0.113.9/24:22'] }, 'egress.allow.0: has bits beyond its prefix'],
    [{ mode: 'listed', allow: ['10.0.0.0/8:22'] }, 'egress.allow.0: overlaps'],
    [
      { mode: 'listed', allow: Array.from({ length: 10_000 }, (_, at) => `h${at}.example.com`) },
      'at most 128',
    ],
    [{ mode: 'listed', allow: ['db.shop.internal:5432'] }, 'egress.allow.0: is a name of units'],
    [{ mode: 'listed', allow: ['*.Shop.Internal.'] }, 'egress.allow.0: is a name of units'],
    [{ mode: 'some' }, 'egress.mode'],
    [{ hosts: [] }, 'egress.hosts: unknown field'],
  ])('%j are refused with a sentence at the path', (asked, message) => {
    expect(fault(asked)).toContain(message)
  })

  it('are stored as one text for each meaning, whatever the script', () => {
    const allow = ['bücher.example', 'BÜCHER.example.', '例え.テスト', 'مثال.إختبار']
    expect(parse(egressAskedSchema, { mode: 'listed', allow }).allow).toEqual([
      'xn--bcher-kva.example',
      'xn--r8jz45g.xn--zckzah',
      'xn--mgbh0fb.xn--kgbechtv',
    ])
  })
})
