// The server carries a host's request for certificates to the supervisor, and the answer back (decisions/joining.md). What
// is behind both is tested in supervisor/join/renewals.test.ts.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTwoHosts, type TwoHosts } from '../../../test/support/two-hosts.ts'
import type { RenewalOutcome } from '../../engine/renewal.ts'
import { DAY } from '../../lib/clock.ts'
import { listHostEvents, listHosts } from '../../store/hosts.ts'
import { renewCertificates } from './renew.ts'

let hosts: TwoHosts
beforeAll(async () => {
  hosts = await createTwoHosts()
})
afterAll(async () => await hosts.domain.close())

const soon = new Date('2027-01-01T00:00:00Z')
const late = new Date(soon.getTime() + 365 * DAY)
let request: string | null = null
let endsAt = soon
let told: RenewalOutcome[] = []
let carried: unknown[] = []
const signed: RenewalOutcome = { engine: 'for the engine', gateway: 'for the gateway' }

beforeEach(() => {
  request = null
  told = []
  carried = []
  const far = hosts.app.fleet.find(hosts.far)
  if (!far) throw new Error('no other host')
  Object.assign(far, {
    engine: {
      ...far.unguarded,
      renew: async (outcome: RenewalOutcome | null) => {
        if (outcome) told.push(outcome)
        if (outcome && !('refused' in outcome)) endsAt = late
        return { endsAt, request: outcome ? null : request }
      },
    },
  })
})

async function run(answer: RenewalOutcome | Error): Promise<void> {
  const signRenewal = async (asked: unknown) => {
    carried.push(asked)
    if (answer instanceof Error) throw answer
    return await Promise.resolve(answer)
  }
  await renewCertificates(Object.assign(hosts.app, { signRenewal }))
}

const endOf = async () => (await listHosts(hosts.app.db)).find(({ id }) => id === hosts.far)?.certificatesEnd
const events = async () =>
  (await listHostEvents(hosts.app.db, { host: hosts.far, limit: 10 }))
    .map(({ event, reason }) => [event, reason])
    .filter(([event]) => event === 'renewed' || event === 'not renewed')

describe('the job that renews certificates of hosts', () => {
  it('keeps when they end, and asks for nothing while the host does not', async () => {
    await run(signed)
    expect(await endOf()).toEqual(soon)
    expect(hosts.app.fleet.find(hosts.far)?.certificatesEnd).toEqual(soon)
    expect([carried, told]).toEqual([[], []])
    expect(await events()).toEqual([])
  })

  it('goes on when the supervisor does not answer', async () => {
    request = 'a request'
    await run(new Error('the supervisor does not answer'))
    expect(told).toEqual([])
  })

  it('tells the host why it is refused, and keeps the reason once', async () => {
    request = 'a request'
    for (const _again of [1, 2]) await run({ refused: 'it was removed' })
    expect(told).toEqual([{ refused: 'it was removed' }, { refused: 'it was removed' }])
    expect(await events()).toEqual([['not renewed', 'it was removed']])
  })

  it('brings the host its certificates, in the name that the server knows it by', async () => {
    request = 'a request'
    await run(signed)
    expect(carried).toEqual([{ host: 'east', request: 'a request' }])
    expect(told).toEqual([signed])
    expect(await endOf()).toEqual(late)
    expect((await events()).at(-1)).toEqual(['renewed', null])
  })
})
