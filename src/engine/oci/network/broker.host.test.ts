// Secrets that are put into requests (decisions/brokered-secrets.md), with real packets: hosts and a nameserver of the
// test's own, the egress process and the resolver as they are, and curl and Node in the namespaces of machines.

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { BrokerWorld, Sent } from '../../../../test/support/network-lab/broker-world.ts'
import {
  type Lab,
  NEIGHBOUR,
  type NetworkProcess,
  openLab,
  PUBLIC,
} from '../../../../test/support/network-lab/lab.ts'
import { startEgressIn } from '../../../../test/support/network-lab/start-egress.ts'
import { startIn } from '../../../../test/support/network-lab/start-in.ts'
import { run } from '../../../lib/process.ts'
import type { BrokeredSecret, MachineEgress } from '../../egress.ts'
import type { Attachment } from './types.ts'

let lab: Lab
let network: NetworkProcess
let processes: ChildProcess
let world: ChildProcess
let stateDir: string
let roots: string
const machines: Record<string, Attachment> = {}
const groups = { listed: 1, open: 1, plain: 1, other: 2 }
const sent: Sent[] = []

const secret: BrokeredSecret = {
  name: 'KEY',
  placeholder: 'berth_secret_0123456789abcdef',
  value: 'sk-the-real-one',
  hosts: ['api.example.com'],
}
const listed = (...secrets: BrokeredSecret[]): MachineEgress => ({
  mode: 'listed',
  allow: ['api.example.com', 'www.example.com', 'bad.example.com'],
  siblings: 'team',
  stack: null,
  secrets,
})
const open = (...secrets: BrokeredSecret[]): MachineEgress => ({
  ...listed(...secrets),
  mode: 'open',
  allow: [],
})

beforeAll(async () => {
  lab = await openLab()
  stateDir = await mkdtemp(join(tmpdir(), 'broker-'))
  const given: BrokerWorld = {
    nameserver: NEIGHBOUR,
    address: PUBLIC,
    certified: ['api.example.com', 'www.example.com'],
  }
  const [child, first] = await startIn(lab.outside, 'broker-world', given)
  world = child
  roots = (first as { roots: string }).roots
  world.on('message', (message: { sent?: Sent }) => message.sent && sent.push(message.sent))
  network = await lab.openNetwork()
  await network.recover([])
  for (const [machineId, group] of Object.entries(groups))
    machines[machineId] = await network.attach({ machineId, group, address: null })
  processes = await startProcesses()
  await writeFile(join(stateDir, 'roots.pem'), roots)
  await reset()
}, 60_000)
afterAll(async () => {
  await lab?.close()
  for (const child of [world, processes]) child?.kill('SIGKILL')
  await rm(stateDir, { recursive: true })
})
beforeEach(async () => {
  await reset()
  sent.length = 0
})

async function reset(): Promise<void> {
  await network.restrict('listed', listed(secret))
  await network.restrict('open', open(secret))
  await network.restrict(
    'other',
    listed({ ...secret, placeholder: 'berth_secret_of_another', value: 'sk-other' }),
  )
}

const bearer = ['-H', `X-Key: ${secret.placeholder}`]

describe('a machine with a secret', () => {
  test.each(['listed', 'open'])(
    'that is %s reaches the host of it with the value in its headers',
    async (name) => {
      const answer = await curl(name, 'https://api.example.com/', ...bearer, '-u', `x:${secret.placeholder}`)
      expect(answer).toMatchObject({ exitCode: 0, stdout: 'hello from api.example.com\n' })
      const authorization = `Basic ${Buffer.from(`x:${secret.value}`).toString('base64')}`
      expect(sent).toMatchObject([{ key: secret.value, authorization, host: 'api.example.com' }])
    },
  )

  test.each(['listed', 'open'])(
    'that is %s reaches other hosts by their own certificates, and sends them none',
    async (name) => {
      const rest = [...bearer, '--cacert', join(stateDir, 'roots.pem')]
      expect(await curl(name, 'https://www.example.com/', ...rest)).toMatchObject({ exitCode: 0 })
      expect(sent).toMatchObject([{ key: secret.placeholder }])
    },
  )

  test('sends the value in requests of its methods and paths alone', async () => {
    await network.restrict('listed', listed({ ...secret, methods: ['GET'], paths: ['/v1/sessions/s1/*'] }))
    const own = 'https://api.example.com/v1/sessions/s1/events'
    const others = ['https://api.example.com/v1/sessions/s1/../s2/events', `${own}/%2e%2e/%2e%2e/s2/events`]
    for (const url of others) {
      const { stdout } = await curl('listed', url, ...bearer, '--path-as-is')
      expect(stdout).toContain('secret_refused')
    }
    expect((await curl('listed', own, ...bearer, '-X', 'POST')).stdout).toContain('secret_refused')
    expect(sent).toEqual([])
    expect(await curl('listed', own, ...bearer)).toMatchObject({ exitCode: 0 })
    expect(sent).toMatchObject([{ key: secret.value, url: '/v1/sessions/s1/events' }])
  })

  test('leaves a placeholder in a body and in a URL as it is', async () => {
    await curl('listed', `https://api.example.com/?k=${secret.placeholder}`, '-d', secret.placeholder)
    expect(sent).toMatchObject([{ url: `/?k=${secret.placeholder}`, body: secret.placeholder }])
  })

  test('does not reach a host by the name of another one', async () => {
    const [host, other] = ['https://api.example.com/', 'https://www.example.com/']
    expect(await curl('listed', host, ...bearer, '-H', 'Host: www.example.com')).toMatchObject({
      stdout: expect.stringContaining('egress_refused'),
    })
    const asOther = ['-H', 'Host: api.example.com', '--cacert', join(stateDir, 'roots.pem')]
    await curl('listed', other, ...bearer, ...asOther)
    expect(sent).toMatchObject([{ key: secret.placeholder }])
  })

  test('is told that a host cannot be verified, which is sent nothing', async () => {
    await network.restrict('listed', listed({ ...secret, hosts: ['bad.example.com'] }))
    expect(await curl('listed', 'https://bad.example.com/', ...bearer)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('host_unverified'),
    })
    expect(sent).toEqual([])
  })

  test('has no use of another machine’s placeholder', async () => {
    const authority = ['--cacert', join(stateDir, '2', 'ca.crt')]
    await curl('other', 'https://api.example.com/', ...bearer, ...authority)
    expect(sent).toMatchObject([{ key: secret.placeholder }])
    expect(await curl('other', 'https://api.example.com/', ...bearer)).toMatchObject({ exitCode: 60 })
  })

  test('reaches it from Node too, on one connection', async () => {
    const program = `
      const { Agent, request } = require('node:https')
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      const ask = () => new Promise((resolve, reject) => {
        const options = { agent, host: '${PUBLIC}', servername: 'api.example.com', headers: { host: 'api.example.com', 'x-key': '${secret.placeholder}' } }
        request(options, (response) => {
          const reused = response.req.reusedSocket
          response.resume().on('end', () => resolve(reused))
        }).on('error', reject).end()
      })
      ask().then(ask).then((reused) => { console.log(reused); process.exit(0) })`
    const env = [`NODE_EXTRA_CA_CERTS=${join(stateDir, '1', 'ca.crt')}`]
    const args = [`--net=${machine('listed').namespacePath}`, 'env', ...env, process.execPath, '-e', program]
    expect(await run('nsenter', args, { timeoutMs: 20_000 })).toMatchObject({ stdout: 'true\n' })
    expect(sent.map(({ key }) => key)).toEqual([secret.value, secret.value])
  })
})

describe('a change', () => {
  test('of a value is in the next request, and one that is taken away is in none', async () => {
    await network.restrict('listed', listed({ ...secret, value: 'sk-rotated' }))
    await curl('listed', 'https://api.example.com/', ...bearer)
    await network.restrict('listed', listed())
    await curl('listed', 'https://api.example.com/', ...bearer, '--cacert', join(stateDir, 'roots.pem'))
    expect(sent.map(({ key }) => key)).toEqual(['sk-rotated', secret.placeholder])
  })

  test('is complete after the process was killed: the authority is the same, and nothing left meanwhile', async () => {
    const before = await readFile(join(stateDir, '1', 'ca.crt'), 'utf8')
    processes.kill('SIGKILL')
    await once(processes, 'exit')
    const resolved = ['--resolve', `api.example.com:443:${PUBLIC}`]
    for (const name of ['listed', 'open'])
      expect((await curl(name, 'https://api.example.com/', ...bearer, ...resolved)).exitCode).not.toBe(0)
    expect(sent).toEqual([])
    processes = await startProcesses()
    await expect
      .poll(async () => (await curl('open', 'https://api.example.com/', ...bearer)).exitCode, {
        timeout: 20_000,
      })
      .toBe(0)
    expect(sent.at(-1)?.key).toBe(secret.value)
    expect(await readFile(join(stateDir, '1', 'ca.crt'), 'utf8')).toBe(before)
  })
})

test('a machine without secrets is not read, whatever placeholder it sends', async () => {
  const rest = [...bearer, '--cacert', join(stateDir, 'roots.pem')]
  expect(await curl('plain', 'https://api.example.com/', ...rest)).toMatchObject({ exitCode: 0 })
  expect(sent).toMatchObject([{ key: secret.placeholder }])
})

function machine(name: string): Attachment {
  const found = machines[name]
  if (!found) throw new Error(`no machine ${name}`)
  return found
}

/** As in a machine of the first team, unless the arguments say what it trusts. It asks the gateway for names. */
async function curl(name: string, url: string, ...rest: string[]) {
  const resolver = join(stateDir, 'resolv.conf')
  await writeFile(resolver, `nameserver ${lab.gateway}\n`)
  const trusted = rest.includes('--cacert') ? [] : ['--cacert', join(stateDir, '1', 'ca.crt')]
  const script = 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"'
  const command = ['curl', '-sS', '--max-time', '8', url, ...trusted, ...rest]
  const inside = ['unshare', '--mount', 'sh', '-c', script, 'sh', resolver, ...command]
  return await run('nsenter', [`--net=${machine(name).namespacePath}`, ...inside], { timeoutMs: 20_000 })
}

async function startProcesses(): Promise<ChildProcess> {
  return await startEgressIn(lab, { stateDir, roots })
}
