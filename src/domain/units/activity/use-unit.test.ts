// Calls that use a unit which this process knows from an earlier use: its use is recorded in the statement that reads it, and
// nothing else happens before what `written` stands for has happened.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../../../test/support/domain.ts'
import { countStatements } from '../../../../test/support/statements.ts'
import type { Unit } from '../../../contract/unit.ts'
import { openEgress } from '../../../lib/egress/rules.ts'
import type { Caller } from '../../credentials/caller.ts'
import { setUnitEgress } from '../egress.ts'
import { execInUnit } from '../exec.ts'
import { getUnit } from '../get.ts'
import { sleepUnit } from '../sleep.ts'
import { stopUnit } from '../stop.ts'

let domain: TestDomain
let caller: Caller
let unit: Unit

beforeAll(async () => {
  domain = await createTestDomain()
})
beforeEach(async () => {
  caller = await domain.makeCaller()
  unit = await makeUnit(domain.app, caller, { sleep: '10m' })
})
afterAll(async () => await domain.close())

const command = { cmd: ['echo', 'hello'], timeoutMs: 1000 }
const exec = (by = caller, written?: Promise<void>) =>
  execInUnit(domain.app, by, unit.id, command, written ? { written } : {})
const execs = () =>
  domain.engine.calls.filter(({ operation, id }) => operation === 'exec' && id === unit.id).length
const thaws = () =>
  domain.engine.calls.filter(({ operation, id }) => operation === 'thaw' && id === unit.id).length
const sleepsAt = async () => Date.parse((await getUnit(domain.app, caller, unit.id)).sleepsAt ?? '')
const rulesOf = (allow: string[]) => ({ ...openEgress, mode: 'listed' as const, allow })

describe('a command in a unit that ran one before', () => {
  it('is one statement of the server, which moves sleepsAt', async () => {
    await exec()
    const before = await sleepsAt()
    domain.clock.advance(30_000)
    const statements = countStatements()
    expect(await exec()).toMatchObject({ stdout: 'hello\n', exitCode: 0 })
    expect(statements()).toBe(1)
    expect((await sleepsAt()) - before).toBeGreaterThanOrEqual(30_000)
  })

  it('is shared by commands that come together, each of which runs', async () => {
    await exec()
    const statements = countStatements()
    const before = execs()
    await Promise.all(Array.from({ length: 20 }, () => exec()))
    expect(execs() - before).toBe(20)
    expect(statements()).toBeLessThanOrEqual(2)
  })

  it('wakes it after it slept, and is refused after it was stopped', async () => {
    await exec()
    await sleepUnit(domain.app, caller, unit.id, { sleep: '10m', stack: false, now: true })
    expect(await exec()).toMatchObject({ exitCode: 0 })
    expect(thaws()).toBe(1)
    await stopUnit(domain.app, caller, unit.id)
    await expect(exec()).rejects.toMatchObject({ status: 409 })
  })

  it('moves the sleep of the whole stack once that sleeps together', async () => {
    const other = await makeUnit(domain.app, caller, { name: 'db' }, { stack: unit.name })
    await exec()
    await sleepUnit(domain.app, caller, unit.id, { sleep: '10m', stack: true, now: false })
    const before = Date.parse((await getUnit(domain.app, caller, other.id)).sleepsAt ?? '')
    domain.clock.advance(30_000)
    await exec()
    const after = Date.parse((await getUnit(domain.app, caller, other.id)).sleepsAt ?? '')
    expect(after - before).toBeGreaterThanOrEqual(30_000)
  })

  it('keeps it from being put to sleep while it runs', async () => {
    await exec()
    const release = domain.engine.hang('exec')
    const before = execs()
    const running = exec()
    await expect.poll(execs).toBe(before + 1)
    const sleeping = sleepUnit(domain.app, caller, unit.id, { sleep: '10m', stack: false, now: true })
    await expect(sleeping).rejects.toMatchObject({ status: 409 })
    release()
    await running
  })
})

describe('a unit that was used before', () => {
  it('is neither used nor kept awake by a caller of another team', async () => {
    await exec()
    const before = await sleepsAt()
    domain.clock.advance(30_000)
    await expect(exec(await domain.makeCaller())).rejects.toMatchObject({ status: 403 })
    expect(await sleepsAt()).toBe(before)
    expect(domain.app.activity.uses.has(unit.id)).toBe(false)
  })

  it('refuses a credential that may not reach what the unit may reach by now', async () => {
    const narrow = { ...caller, policy: { ...caller.policy, egress: rulesOf(['example.com']) } }
    await setUnitEgress(domain.app, caller, unit.id, { mode: 'listed', allow: ['example.com'] })
    await exec(narrow)
    const before = execs()
    await setUnitEgress(domain.app, caller, unit.id, {
      mode: 'listed',
      allow: ['example.com', 'example.org'],
    })
    for (let time = 0; time < 2; time += 1) await expect(exec(narrow)).rejects.toMatchObject({ status: 402 })
    expect(execs()).toBe(before)
  })
})

describe('what a command waits for', () => {
  it('comes before it runs, and before it wakes its unit', async () => {
    await exec()
    for (const state of ['running', 'sleeping']) {
      if (state === 'sleeping')
        await sleepUnit(domain.app, caller, unit.id, { sleep: '10m', stack: false, now: true })
      const before = [execs(), thaws()]
      const reads = countStatements()
      const written = Promise.withResolvers<void>()
      const running = exec(caller, written.promise)
      await expect.poll(reads).toBeGreaterThan(0)
      await new Promise((resolve) => setTimeout(resolve, 50))
      expect([execs(), thaws()]).toEqual(before)
      expect((await getUnit(domain.app, caller, unit.id)).state).toBe(state)
      written.resolve()
      expect(await running).toMatchObject({ exitCode: 0 })
    }
  })

  it('refuses it if it fails', async () => {
    await exec()
    const before = execs()
    const failed = Promise.reject(new Error('the row was not written'))
    failed.catch(() => {})
    await expect(exec(caller, failed)).rejects.toThrow('the row was not written')
    expect(execs()).toBe(before)
    expect(domain.app.activity.uses.has(unit.id)).toBe(false)
  })
})
