import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createBody,
  createTestDomain,
  eventually,
  makeUnit,
  type TestDomain,
} from '../../../test/support/domain.ts'
import type { Policy } from '../../contract/policy.ts'
import { runResultSchema } from '../../contract/run-result.ts'
import { createUnits } from './create.ts'
import { destroyQuietly, destroyUnit } from './destroy.ts'
import { execInUnit } from './exec.ts'
import { getRecord, getUnit } from './get.ts'
import { listUnits } from './list.ts'
import { stopUnit } from './stop.ts'

let domain: TestDomain
beforeAll(async () => {
  domain = await createTestDomain()
})
afterAll(async () => await domain.close())

const exec = { timeoutMs: 5_000 }
const machineOf = (id: string) => domain.engine.machines().find((machine) => machine.id === id)

describe('a create', () => {
  it('returns a running unit in a new stack of its name', async () => {
    const caller = await domain.makeCaller()
    const result = await createUnits(domain.app, caller, createBody({ size: 'nano', ports: [80] }))
    expect(runResultSchema.parse(result)).toEqual(result)
    const [unit] = result.units
    expect(unit).toMatchObject({
      name: 'web',
      state: 'running',
      size: 'nano',
      internalHost: 'web.web.internal',
      sleep: '30m',
      stoppedReason: null,
      ports: [80],
      error: null,
    })
    expect(Date.parse(unit?.sleepsAt ?? '') - Date.parse(unit?.lastUsedAt ?? '')).toBe(30 * 60_000)
    expect(result.costLine).toContain('0.25 euro cents an hour')
    expect(machineOf(unit?.id ?? '')?.state).toBe('running')
  })

  it('gives a second stack of the same name a suffix', async () => {
    const caller = await domain.makeCaller()
    const name = `${'a'.repeat(24)}-${'b'.repeat(7)}`
    const first = await makeUnit(domain.app, caller, { name })
    const second = await makeUnit(domain.app, caller, { name })
    expect(first.internalHost).toBe(`${name}.${name}.internal`)
    expect(second.internalHost).toMatch(/^(.+)\.a{24}-[0-9a-f]{6}\.internal$/)
  })

  it('puts a unit into the named stack, and refuses a name that is taken there', async () => {
    const caller = await domain.makeCaller()
    const first = await makeUnit(domain.app, caller, { name: 'a' }, { stack: 'shop' })
    const second = await makeUnit(domain.app, caller, { name: 'b' }, { stack: 'shop' })
    expect(second.stackId).toBe(first.stackId)
    await expect(makeUnit(domain.app, caller, { name: 'a' }, { stack: 'shop' })).rejects.toMatchObject({
      status: 409,
      code: 'conflict',
    })
    await destroyUnit(domain.app, caller, first.id)
    expect((await makeUnit(domain.app, caller, { name: 'a' }, { stack: 'shop' })).state).toBe('running')
  })

  it('returns a unit in creating when the wait times out, and the unit runs later', async () => {
    const caller = await domain.makeCaller()
    const release = domain.engine.hang('pull')
    const unit = await makeUnit(domain.app, caller, {}, { waitTimeoutMs: 20 })
    expect(unit.state).toBe('creating')
    release()
    await eventually(domain.app, caller, unit.id, 'running')
  })

  it('returns at once without waiting when asked to', async () => {
    const caller = await domain.makeCaller()
    const release = domain.engine.hang('pull')
    const unit = await makeUnit(domain.app, caller, {}, { wait: false })
    expect(unit.state).toBe('creating')
    release()
    await eventually(domain.app, caller, unit.id, 'running')
  })

  it('refuses an image reference that is not valid', async () => {
    const caller = await domain.makeCaller()
    await expect(makeUnit(domain.app, caller, { image: 'a/../b' })).rejects.toMatchObject({
      status: 400,
      details: [{ path: 'spec.image' }],
    })
  })

  it('leaves no stack behind when it is refused', async () => {
    const caller = await domain.makeCaller({ maxConcurrentUnits: 0 })
    await expect(makeUnit(domain.app, caller, {}, { stack: 'never' })).rejects.toMatchObject({ status: 402 })
    const stacks = await domain.app.db.selectFrom('stacks').selectAll().where('name', '=', 'never').execute()
    expect(stacks).toEqual([])
  })
})

describe('a create that fails', () => {
  const failures = [
    {
      operation: 'pull',
      kind: 'image_not_found',
      says: /^Image "berth\.local\/debian:12": .* Check its name and tag\.$/,
    },
    { operation: 'pull', kind: 'image_denied', says: /^Image "berth\.local\/debian:12": .* public image/ },
    {
      operation: 'pull',
      kind: 'image_unavailable',
      says: /^Image "berth\.local\/debian:12": .* Try again later\.$/,
    },
    { operation: 'pull', kind: 'image_invalid', says: /^Image "berth\.local\/debian:12": / },
    { operation: 'create', kind: 'host_full', says: /host_full\. Try again later\.$/ },
    { operation: 'start', kind: 'start_failed', says: /could not be started/ },
    { operation: 'start', kind: 'internal', says: /host failed/ },
  ] as const

  it.each(failures)('with $kind at $operation returns 502 and undoes everything', async (failure) => {
    const caller = await domain.makeCaller()
    domain.engine.fail(failure.operation, failure.kind)
    const error: unknown = await makeUnit(domain.app, caller).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({
      status: 502,
      code: 'provider_error',
      message: expect.stringMatching(failure.says),
    })
    const { units } = await listUnits(domain.app, caller, { all: false, limit: 10 })
    const [unit] = units
    expect(error).toMatchObject({ details: { unitId: unit?.id } })
    expect(unit).toMatchObject({
      state: 'error',
      costCentsSoFar: 0,
      error: expect.stringMatching(failure.says),
    })
    const keptMs = Date.parse(unit?.destroysAt ?? '') - domain.clock.now().getTime()
    expect(keptMs).toBeGreaterThan(3_590_000)
    expect(keptMs).toBeLessThanOrEqual(3_600_000)
    expect(machineOf(unit?.id ?? '')).toBeUndefined()
    const rows = await domain.app.db
      .selectFrom('units')
      .select('address')
      .where('team_id', '=', caller.teamId)
      .execute()
    expect(rows).toEqual([{ address: null }])
  })

  it('keeps its error also if a sibling that failed at the same time destroys what it last saw being made', async () => {
    const caller = await domain.makeCaller()
    domain.engine.fail('start', 'start_failed')
    await expect(makeUnit(domain.app, caller)).rejects.toMatchObject({ status: 502 })
    const [unit] = (await listUnits(domain.app, caller, { all: false, limit: 10 })).units
    const failed = await getRecord(domain.app, caller, unit?.id ?? '')
    const seen = { ...failed, state: 'creating', revision: failed.revision - 1n } as const
    await destroyQuietly(domain.app, seen)
    expect((await getRecord(domain.app, caller, failed.id)).state).toBe('error')
    await destroyQuietly(domain.app, failed)
    expect((await getRecord(domain.app, caller, failed.id)).state).toBe('destroyed')
  })

  it('because the answer of the engine was lost is undone too', async () => {
    const caller = await domain.makeCaller()
    domain.engine.fail('create', 'timeout', { when: 'after' })
    await expect(makeUnit(domain.app, caller)).rejects.toMatchObject({ status: 502 })
    expect(domain.engine.calls.at(-1)?.operation).toBe('destroy')
    const [unit] = (await listUnits(domain.app, caller, { all: false, limit: 10 })).units
    expect(machineOf(unit?.id ?? '')).toBeUndefined()
  })

  it('does not count towards the concurrency limit', async () => {
    const caller = await domain.makeCaller({ maxConcurrentUnits: 1 })
    domain.engine.fail('pull', 'image_not_found')
    await expect(makeUnit(domain.app, caller)).rejects.toMatchObject({ status: 502 })
    expect((await makeUnit(domain.app, caller)).state).toBe('running')
  })
})

describe('a unit whose process exits while it is created', () => {
  it('is stopped with reason exited, and shows its exit code', async () => {
    const caller = await domain.makeCaller()
    domain.engine.onExec(({ id, argv }) => {
      if (argv[0] !== 'is-it-up') return null
      domain.engine.endProcess(id, { code: 3 })
      return { exitCode: 1 }
    })
    const unit = await makeUnit(domain.app, caller, { healthcheck: { cmd: ['is-it-up'], intervalMs: 500 } })
    expect(unit).toMatchObject({
      state: 'stopped',
      stoppedReason: 'exited',
      lastExit: { code: 3, oomKilled: false },
    })
    expect(unit.startedAt).not.toBeNull()
  })
})

describe('a healthcheck', () => {
  it('delays the answer of a create until it passes', async () => {
    const caller = await domain.makeCaller()
    let probes = 0
    domain.engine.onExec(({ argv }) => {
      if (argv[0] !== 'third-time') return null
      probes += 1
      return { exitCode: probes < 3 ? 1 : 0 }
    })
    const create = makeUnit(
      domain.app,
      caller,
      { healthcheck: { cmd: ['third-time'], intervalMs: 30_000, timeoutMs: 300_000 } },
      { waitTimeoutMs: 300_000 },
    )
    while (probes < 3) {
      const before = probes
      domain.clock.advance(30_000)
      while (probes === before) await new Promise((resolve) => setTimeout(resolve, 1))
    }
    expect((await create).state).toBe('running')
    expect(probes).toBe(3)
  })

  it('runs soon at first, then less often, up to its interval', async () => {
    const caller = await domain.makeCaller()
    const probedAtMs: number[] = []
    domain.engine.onExec(({ argv }) => {
      if (argv[0] !== 'last-time') return null
      probedAtMs.push(domain.clock.monotonicMs())
      return { exitCode: probedAtMs.length < 8 ? 1 : 0 }
    })
    const create = makeUnit(domain.app, caller, { healthcheck: { cmd: ['last-time'], intervalMs: 1000 } })
    const over = create.finally(() => clearInterval(time))
    // Several turns of the event loop for each tick, so that a probe begins in the tick it is due in.
    const time = setInterval(() => domain.clock.advance(50), 5)
    expect((await over).state).toBe('running')
    const pauses = probedAtMs.slice(1).map((at, i) => at - (probedAtMs[i] ?? 0))
    const due = [100, 150, 225, 337, 506, 759, 1000]
    expect(pauses).toHaveLength(due.length)
    for (const [i, pause] of pauses.entries()) expect(pause).toBeGreaterThanOrEqual(due[i] ?? 0)
    expect(pauses[0]).toBeLessThan(2000)
  })

  it('that does not pass in time ends the create in error', async () => {
    const caller = await domain.makeCaller()
    const said = 'no database\n\u202e'
    domain.engine.onExec(({ argv }) => (argv[0] === 'never-up' ? { exitCode: 1, stderr: said } : null))
    const healthcheck = { cmd: ['never-up'], intervalMs: 500, timeoutMs: 1000 }
    const cmd = ['sh', '-c', 'echo FATAL: cannot reach it; sleep infinity']
    await expect(makeUnit(domain.app, caller, { cmd, healthcheck })).rejects.toMatchObject({
      status: 502,
      message: expect.stringMatching(
        /healthcheck did not pass within 1000 ms\. It ran \d+ times, and the last time ended with exit code 1: "no database"\. The unit printed last: "FATAL: cannot reach it"\.$/,
      ),
    })
  })
})

describe('a create under a policy and a plan', () => {
  const refusals: { spec: Record<string, unknown>; policy: Partial<Policy> }[] = [
    { spec: { size: 'large' }, policy: { allowedSizes: ['nano'] } },
    { spec: { image: 'ghcr.io/a/b:1' }, policy: { allowedRegistries: ['docker.io'] } },
    { spec: { image: 'node:22' }, policy: { allowedRegistries: ['ghcr.io'] } },
    { spec: { sleep: '2h' }, policy: { maxSleep: '1h' } },
  ]
  it.each(refusals)('is refused for $spec under $policy', async ({ spec, policy }) => {
    const caller = await domain.makeCaller(policy)
    await expect(makeUnit(domain.app, caller, spec)).rejects.toMatchObject({
      status: 402,
      code: 'policy_violation',
    })
  })

  it('a create of a unit that never sleeps is refused with 403 on a hobby plan', async () => {
    const caller = await domain.makeCaller({}, 'hobby')
    await expect(makeUnit(domain.app, caller, { sleep: 'never' })).rejects.toMatchObject({ status: 403 })
  })

  it('never exceeds a limit of five units, also with fifty concurrent creates', async () => {
    const caller = await domain.makeCaller({ maxConcurrentUnits: 5 })
    const results = await Promise.allSettled(
      Array.from({ length: 50 }, (_, index) => makeUnit(domain.app, caller, { name: `u${index}` })),
    )
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    expect(results.length - refused.length).toBe(5)
    for (const reason of refused) expect(reason).toMatchObject({ status: 402, code: 'quota_exceeded' })
    const [first] = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
    await stopUnit(domain.app, caller, first?.id ?? '')
    expect((await makeUnit(domain.app, caller, { name: 'again' })).state).toBe('running')
  })
})

describe('the environment', () => {
  // Reliability S32.
  it('resolves addresses, hides secrets and returns generated ones once', async () => {
    const caller = await domain.makeCaller()
    const { units, outputs } = await createUnits(
      domain.app,
      caller,
      createBody(
        {
          name: 'app',
          env: {
            URL: 'http://{{unit:db}}:5432/{{self:host}}/{{unit:NOT}}',
            PASSWORD: { secret: 'db-password' },
            TOKEN: { secret: 'token', value: 'given-by-caller' },
          },
        },
        { stack: 'shop' },
      ),
    )
    const [app] = units
    expect(Object.keys(outputs)).toEqual(['db-password'])
    expect(app?.env).toEqual({
      URL: 'http://{{unit:db}}:5432/{{self:host}}/{{unit:NOT}}',
      PASSWORD: { secret: 'db-password' },
      TOKEN: { secret: 'token' },
    })
    const printed = async (id: string, name: string) =>
      (await execInUnit(domain.app, caller, id, { cmd: ['printenv', name], ...exec })).stdout.trim()
    expect(await printed(app?.id ?? '', 'URL')).toBe('http://db.shop.internal:5432/localhost/{{unit:NOT}}')
    expect(await printed(app?.id ?? '', 'PASSWORD')).toBe(outputs['db-password'])
    expect(await printed(app?.id ?? '', 'TOKEN')).toBe('given-by-caller')

    const second = await createUnits(
      domain.app,
      caller,
      createBody({ name: 'db', env: { PW: { secret: 'db-password' } } }, { stack: 'shop' }),
    )
    expect(second.outputs).toEqual({})
    expect(await printed(second.units[0]?.id ?? '', 'PW')).toBe(outputs['db-password'])
  })

  it('the environment and the boot files are stored encrypted, and deleted with the unit', async () => {
    const caller = await domain.makeCaller()
    const canary = 'canary-5f1d'
    const unit = await makeUnit(domain.app, caller, {
      env: { KEY: { secret: 'key', value: canary } },
      files: { '/app/config': canary },
    })
    expect(unit.files).toEqual([{ path: '/app/config', bytes: canary.length }])
    const secrets = await domain.app.db
      .selectFrom('secrets')
      .selectAll()
      .where('owner_id', '=', unit.id)
      .execute()
    const files = await domain.app.db
      .selectFrom('boot_files')
      .selectAll()
      .where('unit_id', '=', unit.id)
      .execute()
    for (const { sealed } of [...secrets, ...files]) expect(sealed.includes(canary)).toBe(false)
    expect([secrets.length, files.length]).toEqual([1, 1])
    const row = await domain.app.db
      .selectFrom('units')
      .selectAll()
      .where('id', '=', unit.id)
      .executeTakeFirst()
    expect(inspect(row, { depth: Infinity })).not.toContain(canary)
    expect(
      (await execInUnit(domain.app, caller, unit.id, { cmd: ['cat', '/app/config'], ...exec })).stdout,
    ).toBe(canary)

    await destroyUnit(domain.app, caller, unit.id)
    const left = await domain.app.db
      .selectFrom('boot_files')
      .selectAll()
      .where('unit_id', '=', unit.id)
      .execute()
    expect(left).toEqual([])
    expect(
      await domain.app.db.selectFrom('secrets').selectAll().where('owner_id', '=', unit.id).execute(),
    ).toEqual([])
    expect((await getUnit(domain.app, caller, unit.id)).state).toBe('destroyed')
  })
})
