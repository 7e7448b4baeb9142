// What restricted machines reach (design 3 "Network", decisions/egress.md), with real packets: a nameserver and servers of
// the test's own, and the egress process and its resolver as they are.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Outcome, Step } from '../../../../test/support/network-lab/egress-client.ts'
import {
  DNS_PORT,
  EGRESS_GID,
  HOST,
  type Lab,
  NEIGHBOUR,
  type NetworkProcess,
  openLab,
  PUBLIC,
} from '../../../../test/support/network-lab/lab.ts'
import { startEgressIn } from '../../../../test/support/network-lab/start-egress.ts'
import { startIn } from '../../../../test/support/network-lab/start-in.ts'
import { makeKey, proofCertificate, toPem } from '../../../certificates/signed.ts'
import type { MachineEgress } from '../../egress.ts'
import type { Attachment } from './types.ts'

let lab: Lab
let network: NetworkProcess
let processes: ChildProcess
let world: ChildProcess
const machines: Record<string, Attachment> = {}
const groups = { listed: 1, open: 1, mate: 1, closed: 1 }

const rules = (...allow: string[]): MachineEgress => ({
  mode: 'listed',
  allow,
  siblings: 'stack',
  stack: 'shop',
  secrets: [],
})
const some = rules(
  'a.example.com',
  '*.sub.example.com',
  'git.example.com:22',
  'rebind.example.com',
  'own.example.com',
)
const script = (file: string) =>
  new URL(`../../../../test/support/network-lab/${file}.ts`, import.meta.url).pathname

beforeAll(async () => {
  lab = await openLab()
  const addresses = { 'rebind.example.com': '10.200.0.1', 'own.example.com': HOST }
  ;[world] = await startIn(lab.outside, 'egress-world', {
    nameserver: NEIGHBOUR,
    address: PUBLIC,
    addresses,
    ...(await makeCertificate()),
  })
  await openHost()
  for (const [machineId, group] of Object.entries(groups))
    machines[machineId] = await network.attach({ machineId, group, address: null })
  for (const name of ['open', 'mate', 'listed']) await lab.serve(machine(name).namespacePath, '0.0.0.0:7000')
  processes = await startProcesses()
  await network.restrict('listed', some)
  await network.restrict('mate', { mode: 'open', allow: [], siblings: 'team', stack: 'shop', secrets: [] })
  await network.restrict('closed', { mode: 'none', allow: [], siblings: 'none', stack: 'shop', secrets: [] })
})
afterAll(async () => {
  await lab?.close()
  for (const child of [world, processes]) child?.kill('SIGKILL')
})
beforeEach(() => askWorld())

describe('a listed name', () => {
  test('is reached on 443 and 80, and in the same way by a wildcard', async () => {
    const outcomes = await from(
      'listed',
      tls('a.example.com'),
      tls('x.sub.example.com'),
      http('a.example.com'),
    )
    expect(outcomes.slice(0, 2)).toEqual([
      { said: 'hello a.example.com\n' },
      { said: 'hello x.sub.example.com\n' },
    ])
    expect(outcomes[2]).toMatchObject({ said: expect.stringContaining('GET a.example.com') })
  })

  test('at a port of its own is reached once it has been looked up, and by that port alone', async () => {
    const ssh = { tcp: PUBLIC, port: 22, say: 'x' }
    const [before, name, after, other] = await from(
      'listed',
      ssh,
      { dns: 'git.example.com', type: 'A' },
      ssh,
      { tcp: PUBLIC, port: 23, say: 'x' },
    )
    expect(before).toEqual(refusedByReset)
    expect([name, after]).toEqual([{ said: `0 ${PUBLIC}` }, { said: expect.stringContaining('hello') }])
    expect(other).toEqual(refusedByReset)
  })

  test('that leads to a private address, or to this host, is refused', async () => {
    const outcomes = await from(
      'listed',
      tls('rebind.example.com'),
      tls('own.example.com'),
      http('rebind.example.com'),
    )
    expect(outcomes.slice(0, 2)).toEqual([denied, denied])
    expect(outcomes[2]).toMatchObject({ said: expect.stringContaining('leads to a private address') })
    expect(await lab.leaks()).toEqual({ to: 0, from: 0 })
  })
})

describe('what is not listed', () => {
  test('is refused in the protocol’s own words', async () => {
    const [overTls, overHttp, nameless] = await from(
      'listed',
      tls('b.example.com'),
      http('b.example.com'),
      tls(''),
    )
    expect([overTls, nameless]).toEqual([denied, denied])
    expect(overHttp).toMatchObject({
      said: expect.stringMatching(/403 Forbidden[^]*egress_refused[^]*b\.example\.com/),
    })
  })

  test('is refused at once where it is a port of this host that is not for units', async () => {
    const steps = [DNS_PORT, 7070].map((port) => ({ tcp: lab.gateway, port, say: 'x' }))
    expect(await from('listed', ...steps)).toEqual([refusedByReset, refusedByReset])
    expect(await from('open', ...steps)).toEqual([refusedByReset, refusedByReset])
  })

  test('is not asked of anybody', async () => {
    await from('listed', tls('secret.b.example.com'), http('secret.b.example.com'), http('db.shop.internal'))
    const outcomes = await from(
      'listed',
      { dns: 'secret.b.example.com', type: 'A' },
      { dns: 'a.example.com', type: 'AAAA' },
      { dns: 'a.example.com', type: 'TXT' },
      { dns: 'a.example.com', type: 'UNKNOWN_65' },
    )
    expect(outcomes).toEqual([{ said: '3' }, { said: '0' }, { said: '0' }, { said: '0' }])
    expect(await askWorld()).toEqual([])
  })

  test.each<[string, Step, unknown]>([
    [
      'an address and another port',
      { tcp: PUBLIC, port: 23, say: 'x' },
      { error: expect.stringContaining('ECONNREFUSED') },
    ],
    [
      'QUIC',
      { udp: PUBLIC, port: 443 },
      { error: expect.stringMatching(/EACCES|EHOSTUNREACH|ECONNREFUSED/) },
    ],
    [
      'another resolver',
      { udp: NEIGHBOUR, port: 53 },
      { error: expect.stringMatching(/EACCES|EHOSTUNREACH|ECONNREFUSED/) },
    ],
    ['the address itself as a host', http(PUBLIC), { said: expect.stringContaining('egress_refused') }],
    [
      'no host at all',
      { tcp: PUBLIC, port: 80, say: 'GET / HTTP/1.0\r\n\r\n' },
      { said: expect.stringContaining('egress_refused') },
    ],
    [
      'a target that is not the host',
      { tcp: PUBLIC, port: 80, say: 'GET http://b.example.com/ HTTP/1.1\r\nHost: a.example.com\r\n\r\n' },
      { said: expect.stringContaining('egress_refused') },
    ],
    [
      'what is neither',
      { tcp: PUBLIC, port: 443, say: 'SSH-2.0-x\r\n' },
      { said: expect.stringContaining('\x15\x03\x03') },
    ],
  ])('%s gets nowhere', async (_what, step, outcome) => {
    expect(await from('listed', step)).toEqual([outcome])
  })

  test('is refused as the second request of a connection too', async () => {
    const request = (host: string) => `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`
    const say = request('a.example.com') + request('b.example.com')
    const [outcome] = await from('listed', { tcp: PUBLIC, port: 80, say })
    expect(outcome).toMatchObject({
      said: expect.stringMatching(/200 OK[^]*GET a\.example\.com[^]*403 Forbidden/),
    })
  })

  test('has no ping, and nothing at all where the mode is none', async () => {
    expect(await lab.ping(machine('listed').namespacePath, PUBLIC)).toBe(false)
    expect(await from('closed', tls('a.example.com'), { dns: 'a.example.com', type: 'A' })).toEqual([
      denied,
      { said: '3' },
    ])
    expect(await from('open', tls('b.example.com'), { udp: PUBLIC, port: 443 })).toEqual([
      { said: 'hello b.example.com\n' },
      { said: 'quic' },
    ])
  })
})

test('what was reached and refused is told by machine, with bytes, and each name once a minute', async () => {
  const told = new Map<string, { count: number; bytesIn: number; bytesOut: number }>()
  network.watchSeen((lines) => {
    for (const { machine: of, host, port, protocol, decision, reason, ...sums } of lines) {
      const key = `${of} ${decision} ${protocol} ${host}${port === null ? '' : `:${port}`} ${reason}`
      const { count, bytesIn, bytesOut } = told.get(key) ?? { count: 0, bytesIn: 0, bytesOut: 0 }
      told.set(key, {
        count: count + sums.count,
        bytesIn: bytesIn + sums.bytesIn,
        bytesOut: bytesOut + sums.bytesOut,
      })
    }
  })
  const many = Array.from({ length: 100 }, (_, at) => ({ dns: `n${at}.b.example.com`, type: 'A' }))
  await from(
    'listed',
    tls('a.example.com'),
    http('b.example.com'),
    tls(''),
    tls('rebind.example.com'),
    { dns: 'git.example.com', type: 'A' },
    ...many,
  )
  const searched = { dns: 'sought.example.com.shop.internal', type: 'A' }
  await from('closed', tls('c.example.com'), searched, { dns: 'mate.shop.internal', type: 'A' })
  await expect
    .poll(() => [...told.keys()], { timeout: 10_000 })
    .toEqual(
      expect.arrayContaining([
        'listed allowed tls a.example.com:443 listed',
        'listed refused http b.example.com:80 not_listed',
        'listed refused tls null:443 no_name',
        'listed refused tls rebind.example.com:443 private_address',
        'listed allowed dns git.example.com:22 listed',
        'listed refused dns n0.b.example.com not_listed',
        'listed refused dns null others',
        'closed refused tls c.example.com:443 not_listed',
        'closed refused dns mate.shop.internal siblings',
      ]),
    )
  // What a client makes of a name that it does not find is no second one.
  expect([...told.keys()].filter((key) => key.includes('sought.example.com'))).toEqual([])
  expect(told.get('listed allowed tls a.example.com:443 listed')?.bytesIn).toBeGreaterThan(500)
  // Forty a minute, of which there are two at most.
  expect([...told.keys()].filter((key) => key.startsWith('listed refused dns n')).length).toBeLessThan(83)
})

describe('siblings', () => {
  test('are reached by what is stated, and may still connect to a restricted one', async () => {
    const reaches = async (name: string, to: string) =>
      (await lab.reach(machine(name).namespacePath, `tcp://${machine(to).address}:7000`))[0] !== null
    expect(await reaches('listed', 'mate')).toBe(true)
    expect(await reaches('listed', 'open')).toBe(false)
    expect(await reaches('closed', 'mate')).toBe(false)
    expect(await reaches('open', 'listed')).toBe(true)
    expect(await reaches('open', 'mate')).toBe(true)
  })

  test('that may not be reached are not woken by the attempt', async () => {
    const pairs: string[] = []
    network.watchTraffic((sent) => pairs.push(...sent.map(({ from: one, to }) => `${one} ${to}`)))
    await lab.reach(machine('closed').namespacePath, `udp://${machine('open').address}:7000`)
    await lab.reach(machine('open').namespacePath, `udp://${machine('mate').address}:7000`)
    await expect
      .poll(() => pairs, { timeout: 5000 })
      .toContain(`${machine('open').address} ${machine('mate').address}`)
    expect(pairs).not.toContain(`${machine('closed').address} ${machine('open').address}`)
  })

  test('have their names where any may be reached', async () => {
    expect(await from('listed', { dns: 'mate.shop.internal', type: 'A' })).toEqual([
      { said: `0 ${machine('mate').address}` },
    ])
    expect(await from('closed', { dns: 'mate.shop.internal', type: 'A' })).toEqual([{ said: '3' }])
  })
})

describe('a change of rules', () => {
  test('cuts what is open and not allowed any more, and nothing else', async () => {
    await network.restrict('open', null)
    const direct = await hold('open', 22)
    const byName = await hold('listed', 443, 'a.example.com')
    const kept = await hold('listed', 443, 'x.sub.example.com')
    const since = performance.now()
    await network.restrict('listed', rules('*.sub.example.com'))
    await network.restrict('open', rules('a.example.com'))
    await Promise.all([direct.ended, byName.ended])
    expect(performance.now() - since).toBeLessThan(2000)
    expect(await kept.isAlive()).toBe(true)
    kept.kill()
    await network.restrict('open', null)
    expect(await from('open', { tcp: PUBLIC, port: 22, say: 'x' })).toMatchObject([
      { said: expect.any(String) },
    ])
    await network.restrict('listed', some)
  })

  test('leaves a pinned address that is still listed, and takes one that is not', async () => {
    const ssh = { tcp: PUBLIC, port: 22, say: 'x' }
    await from('listed', { dns: 'git.example.com', type: 'A' })
    await network.restrict('listed', rules('git.example.com:22'))
    expect(await from('listed', ssh)).toMatchObject([{ said: expect.stringContaining('hello') }])
    await network.restrict('listed', rules('a.example.com'))
    expect(await from('listed', ssh)).toEqual([refusedByReset])
    await network.restrict('listed', rules('203.0.113.0/24:22', '203.0.113.0/28:22'))
    expect(await from('listed', ssh)).toMatchObject([{ said: expect.stringContaining('hello') }])
    await network.restrict('listed', some)
    expect(await from('listed', ssh)).toEqual([refusedByReset])
  })
})

describe('an address', () => {
  const to = (port: number) => ({ tcp: PUBLIC, port, say: 'x' })
  const reached = { said: expect.stringContaining('hello') }

  test('of a listed range is reached at every port, and by UDP, without its name', async () => {
    await network.restrict('listed', rules('203.0.113.0/24'))
    const outcomes = await from('listed', to(22), tls(''), { udp: PUBLIC, port: 443 }, http('b.example.com'))
    expect(outcomes.slice(0, 2)).toEqual([reached, { said: 'hello nobody\n' }])
    expect(outcomes[2]).not.toHaveProperty('error')
    expect(outcomes[3]).toMatchObject({ said: expect.stringContaining('GET b.example.com') })
    await network.restrict('listed', rules('203.0.113.0/24:443'))
    expect(await from('listed', tls(''), to(22), http('b.example.com'))).toEqual([
      { said: 'hello nobody\n' },
      refusedByReset,
      { said: expect.stringContaining('egress_refused') },
    ])
    await network.restrict('listed', some)
    expect(await from('listed', tls(''))).toEqual([denied])
  })

  test('that is denied is reached neither directly nor by a listed name, and what is open to it is cut', async () => {
    const deny = ['203.0.113.0/24']
    await network.restrict('open', null)
    const [direct, byName] = [await hold('open', 22), await hold('listed', 443, 'a.example.com')]
    await network.restrict('open', { ...rules(), mode: 'open', siblings: 'team', deny })
    await network.restrict('listed', { ...some, deny })
    await Promise.all([direct.ended, byName.ended])
    expect(await from('open', to(22), to(443))).toEqual([refusedByReset, refusedByReset])
    // A machine that goes to another address by the name of this one is refused by the process.
    const elsewhere = '203.0.112.10'
    expect(await from('listed', tls('a.example.com'), { tls: elsewhere, name: 'a.example.com' })).toEqual([
      refusedByReset,
      denied,
    ])
    await network.restrict('open', { ...rules(), mode: 'open', siblings: 'team', deny: ['198.51.100.0/24'] })
    expect(await from('open', to(22))).toEqual([reached])
    await network.restrict('open', null)
    await network.restrict('listed', some)
  })
})

describe('nothing that is not listed leaves', () => {
  const attempts = [
    tls('b.example.com'),
    http('b.example.com'),
    { tcp: PUBLIC, port: 23, say: 'x' },
    { udp: PUBLIC, port: 443 },
  ]
  const expectClosed = async (outcomes: Outcome[]) => {
    for (const outcome of outcomes) expect(JSON.stringify(outcome)).toMatch(/error|egress_refused/)
  }

  test('while the egress process is dead, and what is listed passes again when it is back', async () => {
    processes.kill('SIGKILL')
    await once(processes, 'exit')
    await expectClosed(await from('listed', ...attempts, tls('a.example.com')))
    processes = await startProcesses()
    await expect
      .poll(() => from('listed', tls('a.example.com')), { timeout: 10_000 })
      .toEqual([{ said: 'hello a.example.com\n' }])
  })

  test('while the engine is dead, and a pinned address is still reached afterwards', async () => {
    const ssh = { tcp: PUBLIC, port: 22, say: 'x' }
    await from('listed', { dns: 'git.example.com', type: 'A' })
    await network.kill()
    await expectClosed(await from('listed', ...attempts))
    await openHost(Object.keys(groups))
    await expectClosed(await from('listed', ...attempts))
    await expect
      .poll(() => from('listed', tls('a.example.com')), { timeout: 10_000 })
      .toEqual([{ said: 'hello a.example.com\n' }])
    expect(await from('listed', ssh)).toMatchObject([{ said: expect.stringContaining('hello') }])
  })

  test('while the tables are gone, and they come back by themselves', async () => {
    await lab.inside(lab.host, 'nft', 'flush', 'ruleset')
    const outcomes = await from('listed', ...attempts)
    await expectClosed(outcomes)
    await expect
      .poll(() => from('listed', tls('a.example.com')), { timeout: 15_000 })
      .toEqual([{ said: 'hello a.example.com\n' }])
    await expectClosed(await from('listed', ...attempts))
  })

  test('by the egress process itself, whatever it is told', async () => {
    await lab.serve(lab.outside, '10.200.0.1:443', `${PUBLIC}:8443`)
    await lab.serve(lab.host, `${HOST}:443`)
    const targets = ['tcp://10.200.0.1:443', `tcp://${HOST}:443`, `tcp://${PUBLIC}:8443`]
    expect(await lab.reachAs(EGRESS_GID, lab.host, ...targets)).toEqual([null, null, null])
  })
})

// Support

const denied = { error: expect.stringMatching(/ALERT_49|access denied/i) }
const refusedByReset = { error: expect.stringContaining('ECONNREFUSED') }

function machine(name: string): Attachment {
  const found = machines[name]
  if (!found) throw new Error(`no machine ${name}`)
  return found
}

function tls(name: string): Step {
  return { tls: PUBLIC, name }
}

function http(host: string): Step {
  return { tcp: PUBLIC, port: 80, say: `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n` }
}

async function from(name: string, ...steps: Step[]): Promise<Outcome[]> {
  const args = [script('egress-client'), lab.gateway, JSON.stringify(steps)]
  return JSON.parse(await lab.inside(machine(name).namespacePath, process.execPath, ...args)) as Outcome[]
}

/** A connection that a machine keeps open, and uses when it is asked to. */
async function hold(name: string, port: number, servername = '') {
  const program = `
    const { connect } = require('node:${servername === '' ? 'net' : 'tls'}')
    const socket = connect({ host: '${PUBLIC}', port: ${port}, servername: '${servername}', rejectUnauthorized: false })
    socket.on('data', (chunk) => process.stdout.write(chunk)).on('error', () => {}).on('close', () => process.exit(0))
    process.stdin.on('data', (chunk) => socket.write(chunk))
    setInterval(() => socket.write('still\\n'), 100)`
  const args = [`--net=${machine(name).namespacePath}`, process.execPath, '-e', program]
  const child = spawn('nsenter', args, { stdio: ['pipe', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  return {
    ended: once(child, 'exit'),
    isAlive: async () => {
      await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])
      return child.exitCode === null
    },
    kill: () => child.kill('SIGKILL'),
  }
}

async function openHost(known: string[] = []): Promise<void> {
  network = await lab.openNetwork()
  const egress: Record<string, MachineEgress> = {
    listed: some,
    mate: { mode: 'open', allow: [], siblings: 'team', stack: 'shop', secrets: [] },
    closed: { mode: 'none', allow: [], siblings: 'none', stack: 'shop', secrets: [] },
  }
  await network.recover(
    known.map((machineId) => ({
      machineId,
      group: 1,
      address: machine(machineId).address,
      running: true,
      egress: egress[machineId] ?? null,
    })),
  )
}

async function startProcesses(): Promise<ChildProcess> {
  const siblings = { 'mate.shop.internal': machine('mate').address }
  return await startEgressIn(lab, { stateDir: join(tmpdir(), 'no-authorities'), siblings })
}

/** What the nameserver has been asked since the last time. */
async function askWorld(): Promise<string[]> {
  world.send('asked')
  const [asked] = (await once(world, 'message')) as [string[]]
  return asked
}

/** Clients of the lab do not look at it. */
async function makeCertificate(): Promise<{ key: string; cert: string }> {
  const key = await makeKey()
  const cert = proofCertificate({ name: 'a.example.com', keyAuthorization: '' }, { key, now: new Date() })
  return { key: toPem(key), cert }
}
