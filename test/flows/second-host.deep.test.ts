// A second host, as an operator adds it: joined by a token, with an engine of its own in a network namespace of its own.
// Its units are used through the API of the first, while it dies, comes back and is given up (decisions/hosts.md and
// decisions/joining.md). `npm test` covers one of the classes.

import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { ForkResult } from '../../src/contract/fork.ts'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { freePort } from '../../src/lib/free-port.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { eventually } from '../support/berth.ts'
import { createUnit, destroyAll, exec } from '../support/berth-units.ts'
import { keepsMemory } from '../support/memory-kept.ts'
import { hosts, joinAs, ownRowIn, useMachine } from '../support/host-lab.ts'
import { killSupervisor } from '../support/kill.ts'
import { send } from '../support/patient-client.ts'
import { usualClasses } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const SERVER = {
  name: 'web',
  image: 'berth.local/python:3.11',
  size: 'nano',
  cmd: ['python3', '-m', 'http.server', '8000', '--directory', '/srv'],
  files: { '/srv/index.html': 'page of a host' },
  ports: [8000],
  expose: 8000,
}

describe.each(usualClasses)('with %s, a second host', (isolation) => {
  const settings = { BERTH_HOSTS_ADDRESS: '', BERTH_ISOLATION: isolation }
  beforeAll(async () => {
    settings.BERTH_HOSTS_ADDRESS = `0.0.0.0:${await freePort('0.0.0.0')}`
    east.settings['BERTH_GATEWAY_TLS'] = `0.0.0.0:${await freePort('0.0.0.0')}`
  })
  const berth = useBerth(() => settings)
  const eastSettings = {
    BERTH_ISOLATION: isolation,
    BERTH_KEEP_ASIDE: '0s',
    BERTH_DOMAIN: 'east.berth.localhost',
  }
  const east = useMachine('east', isolation === 'runc' ? 1 : 40, eastSettings, ['debian:12', 'python:3.11'])
  // While that host is there, since it has to end those that a failed test leaves.
  afterAll(async () => await destroyAll(berth))

  const command = async (...args: string[]) => await hosts(berth, settings, ...args)
  const rowOf = async (name: string) =>
    (await command('list')).split('\n').find((row) => row.startsWith(`${name} `)) ?? ''
  const nearName = async () => ownRowIn(await command('list')).split(' ')[0] ?? ''
  const isReady = async () => expect(await rowOf('east')).toMatch(/^east +ready /)

  /** The server sees within two seconds that its own host is drained. */
  async function createThere(spec: Record<string, unknown>): Promise<Unit> {
    const near = ownRowIn(await command('list'))
    return await eventually(async () => {
      const unit = await createUnit(berth, { image: 'berth.local/debian:12', size: 'nano', ...spec })
      if (!near.includes(unit.host.id)) return unit
      await berth.call('DELETE', `/v1/units/${unit.id}`)
      throw new Error('a unit was placed on a host that is drained')
    }, 20_000)
  }

  /** Its name is one for DNS to know: here, a visitor knows the address. */
  async function visit({ hostname, port }: URL): Promise<string> {
    const headers = { host: `${hostname}:${port}` }
    const tls = { servername: hostname, rejectUnauthorized: false }
    const asked = request({ host: east.address, port, headers, ...tls }).end()
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    return await text(answer)
  }

  let unit: Unit
  const path = () => `/v1/units/${unit.id}`
  const read = async () => (await berth.call<Unit>('GET', path())).body
  const file = async () =>
    (await berth.call<{ contentBase64: string }>('GET', `${path()}/files?path=/root/letter`)).body
  const untilAway = async () =>
    await eventually(async () => {
      const { status, body } = await berth.call('POST', `${path()}/exec`, { cmd: ['true'] })
      expect({ status, body }).toMatchObject({
        status: 503,
        body: { error: { details: { reason: 'host_away', since: expect.any(String) } } },
      })
    }, 25_000)

  it('is refused a token that is none, and a start without one, with what to do', async () => {
    const without = east.berth.launch(east.settings)
    expect(await without.exitCode()).toBe(1)
    expect(without.output).toContain(
      'This machine has not joined a Berth yet: run "npm run hosts -- join-token',
    )
    const wrong = east.berth.launch({ ...east.settings, BERTH_JOIN: 'berth-join-x' })
    expect(await wrong.exitCode()).toBe(1)
    expect(wrong.output).toContain('This is no join token')
  })

  it('is refused without room for units before its token is read', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'berth-no-room-'))
    await runOrThrow('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'none', directory], { timeoutMs: 10_000 })
    try {
      const full = { ...east.settings, BERTH_DATA_DIR: directory, BERTH_JOIN: 'berth-join-x' }
      const started = east.berth.launch(full)
      expect(await started.exitCode()).toBe(1)
      expect(started.output).toMatch(/disk: 0\.0 GB free for .* Free some space, or set BERTH_DATA_DIR/)
      expect(started.output).not.toContain('join token')
    } finally {
      await runOrThrow('umount', [directory], { timeoutMs: 10_000 })
      await rm(directory, { recursive: true })
    }
  })

  it('joins with a token, and is ready once its engine answers', async () => {
    await joinAs(berth, settings, east)
    expect(east.berth.output).toContain('Berth is ready, as the host east.')
    await eventually(isReady, 15_000)
  })

  it('has units that are used like any other: commands, files, logs, sleep, wake, forks', async () => {
    await command('drain', await nearName())
    unit = await createThere({ name: 'far', cmd: ['sh', '-c', 'echo begun; exec sleep infinity'] })
    expect((await exec(berth, unit, ['echo', 'here'])).stdout).toBe('here\n')
    const letter = Buffer.from('to a host')
    const put = { method: 'PUT', path: `${path()}/files?path=/root/letter`, body: letter }
    expect(await send(berth, put)).toMatchObject({ status: 200 })
    expect(await file()).toMatchObject({ contentBase64: letter.toString('base64') })
    expect(JSON.stringify((await berth.call('GET', `${path()}/logs`)).body)).toContain('begun')
    expect((await berth.call('POST', `${path()}/sleep`, { sleep: '10m', now: true })).status).toBe(200)
    await eventually(async () => expect((await read()).state).toBe('sleeping'))
    expect((await exec(berth, unit, ['cat', '/root/letter'])).stdout).toBe('to a host')
    await exec(berth, unit, ['sh', '-c', 'echo remembered > /dev/shm/mark'])
    const forked = await berth.call<ForkResult>('POST', `${path()}/fork`, { name: 'copy', wait: true })
    const hasMemory = keepsMemory[isolation]
    expect(forked.body.copied).toEqual({ copy: hasMemory ? 'memory' : 'disk' })
    expect(forked.body.units).toMatchObject([{ host: unit.host, state: 'running' }])
    const [copy] = forked.body.units
    if (!copy) throw new Error('no copy')
    expect((await exec(berth, copy, ['cat', '/root/letter'])).stdout).toBe('to a host')
    const mark = await exec(berth, copy, ['cat', '/dev/shm/mark'])
    expect(mark.stdout).toBe(hasMemory ? 'remembered\n' : '')
    expect((await berth.call('DELETE', `/v1/units/${copy.id}`)).status).toBe(200)
  })

  it('has units that are visited at its own gateway, and find each other by name', async () => {
    const body = { spec: SERVER, expose: 'public', waitTimeoutMs: 240_000 }
    const made = await berth.call<RunResult>('POST', '/v1/units', body)
    expect(made.status, JSON.stringify(made.body)).toBe(201)
    const [web] = made.body.units
    // The host could not be removed with it.
    onTestFinished(async () => void (await berth.call('DELETE', `/v1/units/${web?.id}`)))
    expect(web?.state, JSON.stringify(web)).toBe('running')
    const url = new URL(made.body.outputs['URL'] ?? '')
    expect(url.hostname).toMatch(/\.east\.berth\.localhost$/)
    await eventually(async () => expect(await visit(url)).toContain('page of a host'), 60_000)
    const found = await exec(berth, unit, ['getent', 'hosts', web?.internalHost ?? ''])
    expect(found.stdout).toMatch(/^10\.\S+ +web/)
  })

  it('is away when its processes are killed, and its machines are taken over when they are back', async () => {
    const began = (await exec(berth, unit, ['cat', '/proc/1/stat'])).stdout.split(' ')[21]
    await killSupervisor(east.berth)
    await untilAway()
    expect((await read()).state).toBe('running')
    expect(await rowOf('east')).toMatch(/^east +away /)
    // The token of its joining is used, and does no harm.
    await east.berth.start(east.settings)
    await eventually(isReady, 20_000)
    expect((await exec(berth, unit, ['cat', '/proc/1/stat'])).stdout.split(' ')[21]).toBe(began)
  })

  it('is given up and removed, and when it joins again what still ran there is gone', async () => {
    await killSupervisor(east.berth)
    await untilAway()
    await eventually(async () => await command('lost', 'east'), 10_000)
    await eventually(
      async () => expect(await read()).toMatchObject({ state: 'sleeping', stoppedReason: 'provider' }),
      20_000,
    )
    expect((await berth.call('DELETE', path())).status).toBe(200)
    await eventually(
      async () => expect(await command('remove', 'east')).toContain('east is removed.'),
      10_000,
    )
    await joinAs(berth, settings, east)
    await eventually(isReady, 15_000)
    const again = await createThere({ name: 'again' })
    expect(again.host.id).toBe(unit.host.id)
    expect((await berth.call('DELETE', `/v1/units/${again.id}`)).status).toBe(200)
  })
})
