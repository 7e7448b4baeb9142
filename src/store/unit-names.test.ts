import { type Kysely, sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../test/support/domain.ts'
import { stackForkSchema } from '../contract/fork.ts'
import type { Unit } from '../contract/unit.ts'
import { forkStack } from '../domain/forks/fork-stack.ts'
import { destroyStack } from '../domain/stacks/destroy.ts'
import { destroyUnit } from '../domain/units/destroy.ts'
import { silentLog } from '../lib/log.ts'
import { postgresUrl } from '../supervisor/postgres.ts'
import { type Database, openDatabase } from './db.ts'
import { findAddressOfName } from './unit-names.ts'

let domain: TestDomain
/** The same database with the gateway’s role. */
let db: Kysely<Database>

beforeAll(async () => {
  domain = await createTestDomain()
  const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(domain.app.db)
  db = openDatabase(postgresUrl(inject('postgresSocketDir'), 'berth_gateway', rows[0]?.name), silentLog)
})
afterAll(async () => {
  await db.destroy()
  await domain.close()
})

const addressOf = (unit: Unit) =>
  domain.engine.machines().find((machine) => machine.id === unit.id)?.address ?? 'no machine'
const ask = (asker: Unit, name: string) => findAddressOfName(db, { askerAddress: addressOf(asker), name })

describe('the internal name of a unit', () => {
  it('resolves within its stack if it is short and within its team if it is qualified', async () => {
    const caller = await domain.makeCaller()
    const app = await makeUnit(domain.app, caller, { name: 'app' }, { stack: 'shop' })
    const data = await makeUnit(domain.app, caller, { name: 'db' }, { stack: 'shop' })
    const other = await makeUnit(domain.app, caller, { name: 'db' }, { stack: 'blog' })
    expect(await ask(app, 'db')).toBe(addressOf(data))
    expect(await ask(app, 'db.shop.internal')).toBe(addressOf(data))
    expect(await ask(app, 'db.blog.internal')).toBe(addressOf(other))
    expect(await ask(other, 'app')).toBeNull()
    expect(await ask(other, 'app.shop.internal')).toBe(addressOf(app))
  })

  it('does not resolve for another team, even with equal stack names', async () => {
    const [mine, theirs] = [await domain.makeCaller(), await domain.makeCaller()]
    const asker = await makeUnit(domain.app, mine, { name: 'app' }, { stack: 'shop' })
    await makeUnit(domain.app, theirs, { name: 'db' }, { stack: 'shop' })
    expect(await ask(asker, 'db')).toBeNull()
    expect(await ask(asker, 'db.shop.internal')).toBeNull()
  })

  it('does not resolve once the unit is destroyed', async () => {
    const caller = await domain.makeCaller()
    const asker = await makeUnit(domain.app, caller, { name: 'app' }, { stack: 'shop' })
    const gone = await makeUnit(domain.app, caller, { name: 'db' }, { stack: 'shop' })
    await destroyUnit(domain.app, caller, gone.id)
    expect(await ask(asker, 'db')).toBeNull()
  })

  it('resolves to the copy in a forked stack and to the source in the original stack', async () => {
    const caller = await domain.makeCaller()
    const app = await makeUnit(domain.app, caller, { name: 'app' }, { stack: 'shop' })
    const data = await makeUnit(domain.app, caller, { name: 'db' }, { stack: 'shop' })
    const body = stackForkSchema.parse({ into: 'trial' })
    const { units } = await forkStack(domain.app, caller, 'shop', body)
    const [appCopy, dataCopy] = units
    if (!appCopy || !dataCopy) throw new Error('a fork made no copies')
    expect(await ask(appCopy, 'db')).toBe(addressOf(dataCopy))
    expect(await ask(app, 'db')).toBe(addressOf(data))
    expect(await ask(app, 'db.trial.internal')).toBe(addressOf(dataCopy))
    expect(await ask(appCopy, 'db.shop.internal')).toBe(addressOf(data))
  })

  it('resolves to the unit of the newer stack while an older stack of that name is being destroyed', async () => {
    const caller = await domain.makeCaller()
    const asker = await makeUnit(domain.app, caller, { name: 'app' }, { stack: 'blog' })
    await makeUnit(domain.app, caller, { name: 'db' }, { stack: 'shop' })
    const release = domain.engine.hang('destroy')
    const deleting = destroyStack(domain.app, caller, 'shop')
    await expect.poll(() => ask(asker, 'db.shop.internal')).toBeNull()
    const newer = await makeUnit(domain.app, caller, { name: 'db' }, { stack: 'shop' })
    expect(await ask(asker, 'db.shop.internal')).toBe(addressOf(newer))
    release()
    await deleting
  })

  it('does not resolve for an address that is not a unit’s', async () => {
    const caller = await domain.makeCaller()
    await makeUnit(domain.app, caller, { name: 'app' }, { stack: 'shop' })
    expect(await findAddressOfName(db, { askerAddress: '203.0.113.1', name: 'app.shop.internal' })).toBeNull()
  })

  it('has exactly one qualified form', async () => {
    const caller = await domain.makeCaller()
    const app = await makeUnit(domain.app, caller, { name: 'app' }, { stack: 'shop' })
    for (const name of ['app.shop.example', 'app.shop', 'x.app.shop.internal', '.internal', '']) {
      expect(await ask(app, name)).toBeNull()
    }
  })
})

describe('the gateway’s database role', () => {
  it('can read neither secrets nor keys and cannot write', async () => {
    await expect(sql`select * from secrets`.execute(db)).rejects.toThrow(/permission denied/)
    await expect(sql`select * from credentials`.execute(db)).rejects.toThrow(/permission denied/)
    await expect(sql`select spec from units`.execute(db)).rejects.toThrow(/permission denied/)
    await expect(sql`update units set name = 'x'`.execute(db)).rejects.toThrow(/permission denied/)
  })
})
