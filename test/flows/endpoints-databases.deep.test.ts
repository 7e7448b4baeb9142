// Databases and brokers in units, woken by their real clients at an endpoint. The clients trust the installation's CA and
// verify the host name. PostgreSQL and MySQL are tested in files of their own.

import { readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/berth.ts'
import {
  databaseClients as clients,
  type DatabaseName,
  databaseUnits,
  type Trust,
} from '../support/database-clients.ts'
import { hibernate, freeze, FROZEN_FOR_S, type Published, publish, waking } from '../support/published.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth({ BERTH_FROZEN_FOR: `${FROZEN_FOR_S}s` })
let trust: Trust
const published = {} as Record<DatabaseName, Published>

beforeAll(async () => {
  const caFile = berth.credentials.caFile ?? ''
  trust = { caFile, ca: await readFile(caFile, 'utf8') }
  await Promise.all(
    Object.entries(databaseUnits).map(async ([name, { protocol, port, spec }]) => {
      published[name as DatabaseName] = await publish(
        berth,
        { ...spec, name, ports: [port] },
        { port, protocol },
      )
    }),
  )
})

describe.each(clients)('$client', ({ of, ask }) => {
  it('gets a response and wakes its unit from a freeze', async () => {
    const to = published[of]
    // The server may not be listening yet.
    await eventually(async () => expect(await ask(to, trust)).toBe('done'), 60_000)
    await freeze(berth, to.unit)
    expect(await waking(berth, to.unit, 'frozen', () => ask(to, trust))).toBe('done')
  })
})

describe('a hibernated unit', () => {
  beforeAll(
    async () =>
      await hibernate(
        berth,
        Object.values(published).map(({ unit }) => unit),
      ),
  )

  it.each(clients.filter(({ client }) => client !== 'ioredis' && client !== 'etcd3'))(
    'is woken by $client',
    async ({ of, ask }) => {
      // A request waits up to 45 seconds for a unit. On a slow machine the server needs longer, and the client retries.
      const untilDone = () =>
        eventually(async () => expect(await ask(published[of], trust)).toBe('done'), 240_000)
      await waking(berth, published[of].unit, 'cold', untilDone)
    },
    300_000,
  )
})
