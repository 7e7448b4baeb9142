// Two more hosts, as an operator adds them, and what happens to them: a wire that is cut, and a server of another database
// that calls one of them (decisions/hosts.md and decisions/leadership.md).

import { beforeAll, describe, expect, it } from 'vitest'
import { issueIdentity } from '../../src/certificates/fleet-ca.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { askEngineEpoch, connectFarEngine } from '../../src/engine/ipc/client.ts'
import { parseIdentity } from '../../src/lib/fleet-identity.ts'
import { freePort } from '../../src/lib/free-port.ts'
import { eventually } from '../support/berth.ts'
import { createUnit, exec } from '../support/berth-units.ts'
import { hosts, joinAs, ownRowIn, useMachine } from '../support/host-lab.ts'
import { useBerth } from '../support/use-berth.ts'

const settings = { BERTH_HOSTS_ADDRESS: '', BERTH_ISOLATION: 'runc' }
beforeAll(async () => {
  settings.BERTH_HOSTS_ADDRESS = `0.0.0.0:${await freePort('0.0.0.0')}`
})
const berth = useBerth(() => settings)
const east = useMachine('east', 2, { BERTH_ISOLATION: 'runc' })
const west = useMachine('west', 3, { BERTH_ISOLATION: 'runc' })

const command = async (...args: string[]) => await hosts(berth, settings, ...args)
const rowOf = async (name: string) =>
  (await command('list')).split('\n').find((row) => row.startsWith(`${name} `)) ?? ''
const isReady = async (name: string) => expect(await rowOf(name)).toMatch(new RegExp(`^${name} +ready `))
const isAway = async (name: string) => expect(await rowOf(name)).toMatch(new RegExp(`^${name} +away `))

describe('of two hosts that have joined', () => {
  let unit: Unit
  const isHere = async () => expect((await exec(berth, unit, ['echo', 'here'])).stdout).toBe('here\n')

  it('one has the units of a team, when the server takes none itself', async () => {
    for (const machine of [east, west]) await joinAs(berth, settings, machine)
    for (const { name } of [east, west]) await eventually(async () => await isReady(name), 15_000)
    const near = ownRowIn(await command('list'))
    await command('drain', near.split(' ')[0] ?? '')
    await command('drain', 'west')
    unit = await eventually(async () => {
      const made = await createUnit(berth, { name: 'far', image: 'berth.local/debian:12', size: 'nano' })
      if ((await rowOf('east')).includes(made.host.id)) return made
      await berth.call('DELETE', `/v1/units/${made.id}`)
      throw new Error('a unit was placed on a host that is drained')
    }, 20_000)
    await isHere()
  })

  it('one that is cut off is away, and goes on when the wire does; the other one is ready all the time', async () => {
    await east.setWire('down')
    await eventually(async () => await isAway('east'), 25_000)
    expect(await rowOf('west')).toMatch(/^west +draining /)
    const { status, body } = await berth.call('POST', `/v1/units/${unit.id}/exec`, { cmd: ['true'] })
    expect({ status, body }).toMatchObject({
      status: 503,
      body: { error: { details: { reason: 'host_away' } } },
    })
    await east.setWire('up')
    await eventually(async () => await isReady('east'), 40_000)
    await isHere()
  })

  it('one that is away when the server starts can be given up, and is taken back if it was not', async () => {
    await east.setWire('down')
    await berth.start(settings)
    await eventually(async () => await isAway('east'), 30_000)
    await east.setWire('up')
    await eventually(async () => await isReady('east'), 40_000)
    await isHere()
  })

  it('one that another server has called is away until the operator reclaims it, and its units run on', async () => {
    const began = (await exec(berth, unit, ['cat', '/proc/1/stat'])).stdout.split(' ')[21]
    const other = { role: 'server', host: 'other' } as const
    const identity = parseIdentity(await issueIdentity(berth.dataDir, other, new Date()))
    const port = Number(east.settings['BERTH_ENGINE_TLS']?.split(':')[1])
    const address = { host: east.address, port, name: 'east', identity }
    const epoch = (await askEngineEpoch(address)) + 5
    const taken = connectFarEngine({ address, epoch, onLost: () => {} })
    await taken.engine.capacity()
    taken.cut()
    await eventually(async () => expect(await rowOf('east')).toMatch(/away .* hosts -- reclaim east/), 20_000)
    expect(await rowOf('west')).toMatch(/^west +draining /)
    expect(await command('reclaim', 'east')).toContain('east follows this server from now on')
    await eventually(async () => await isReady('east'), 40_000)
    expect(await command('reclaim', 'east')).toContain('follows this server already')
    await eventually(isHere, 20_000)
    expect((await exec(berth, unit, ['cat', '/proc/1/stat'])).stdout.split(' ')[21]).toBe(began)
    expect((await berth.call('DELETE', `/v1/units/${unit.id}`)).status).toBe(200)
  })
})
