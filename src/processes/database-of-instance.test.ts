import type { Kysely } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../test/support/domain.ts'
import type { Database } from '../store/db.ts'
import { refuseDatabaseOfOthers } from './database-of-instance.ts'

let domain: TestDomain
let db: Kysely<Database>
beforeEach(async () => {
  domain = await createTestDomain()
  db = domain.app.db
})
afterEach(async () => await domain.close())

const begin = async (more: { machines?: string[]; databaseUrl?: string; accepted?: string } = {}) => {
  const { machines = [], databaseUrl = null, accepted = null } = more
  await refuseDatabaseOfOthers(db, { instanceId: 'abcd', machines, dataDir: '/data', databaseUrl, accepted })
}

describe('a database that does not know the instance', () => {
  it('is accepted while there are no machines, and from then on', async () => {
    await begin()
    await begin({ machines: ['unit_1'] })
  })

  it('is refused if there are machines, and the message omits the password', async () => {
    await expect(begin({ machines: ['unit_1'] })).rejects.toThrow(
      /in \/data\/postgres does not know .*\(abcd\)/,
    )
    const databaseUrl = 'postgresql://me:secret@db.lan:5433/berth'
    const refused = begin({ machines: ['unit_1'], databaseUrl })
    await expect(refused).rejects.toThrow(/db\.lan:5433\/berth does not know/)
    await expect(refused).rejects.not.toThrow('secret')
    await expect(begin({ machines: ['unit_1'], accepted: 'abce' })).rejects.toThrow('does not know')
  })

  it('is accepted if the operator names the instance or the database knows one of the machines', async () => {
    await begin({ machines: ['unit_1'], accepted: 'abcd' })
    await begin({ machines: ['unit_1'] })
    await db.deleteFrom('instances').execute()
    const unit = await makeUnit(domain.app, await domain.makeCaller())
    await begin({ machines: ['unit_1', unit.id] })
  })
})
