import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { runOrThrow } from '../../../lib/process.ts'
import { type Flow, openConnections } from './connections.ts'
import { hasCarried } from './host-state.ts'
import { applyRules } from './nft.ts'

const TABLE = 'berth_test_connections'
const [machine, neighbour, target, elsewhere] = ['127.77.0.2', '127.77.0.3', '127.77.0.4', '127.77.0.5']

const connections = openConnections()
const open: Socket[] = []
const server = createServer((socket) => socket.on('error', () => {}))
let port = 0

beforeAll(async () => {
  server.listen(0, '0.0.0.0')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
  // The kernel tracks connections where a rule asks for their state.
  await applyRules([
    `add table ip ${TABLE}`,
    `add chain ip ${TABLE} states { type filter hook output priority 0; policy accept; }`,
    `add rule ip ${TABLE} states ct state new counter`,
    `add chain ip ${TABLE} redirects { type nat hook output priority -100; policy accept; }`,
    `add rule ip ${TABLE} redirects ip daddr ${elsewhere} tcp dport 80 redirect to :${port}`,
  ])
})
beforeEach(async () => {
  for (const socket of open.splice(0)) socket.destroy()
  for (const address of [machine, neighbour, target]) await connections.forget(address)
})
afterAll(async () => {
  for (const socket of open) socket.destroy()
  server.close()
  for (const address of [machine, neighbour]) await connections.forget(address)
  connections.close()
  await applyRules([`delete table ip ${TABLE}`])
})

async function begin(from: string, to: string, toPort = port): Promise<void> {
  const socket = connect({ host: to, port: toPort, localAddress: from })
  socket.on('error', () => {})
  open.push(socket)
  await once(socket, 'connect')
}

async function send(from: string, to: string, count = 1): Promise<void> {
  const socket = createSocket('udp4')
  socket.bind(0, from)
  await once(socket, 'listening')
  for (let index = 0; index < count; index += 1)
    await new Promise((resolve) => socket.send('x', 10_000 + index, to, resolve))
  socket.close()
}

/** `tcp 127.77.0.2 127.77.0.4`: the kernel's own list of those that were begun by or to an address of this file. */
function tracked(): string[] {
  const lines = readFileSync('/proc/net/nf_conntrack', 'utf8').split('\n')
  return lines
    .flatMap((line) => {
      const [, protocol, from, to] = /^ipv4\s+2 (\w+)\s.*?src=(\S+) dst=(\S+) /.exec(line) ?? []
      return from?.startsWith('127.77.0.') ? [`${protocol} ${from} ${to}`] : []
    })
    .toSorted()
}

it('the connections that an address has begun or was asked for are forgotten, and no others', async () => {
  await begin(machine, target)
  await begin(neighbour, machine)
  await begin(neighbour, target)
  await send(machine, target)
  expect(tracked()).toHaveLength(4)
  await connections.forget(machine)
  expect(tracked()).toEqual([`tcp ${neighbour} ${target}`])
  await connections.forget(machine)
  await connections.forget('not an address')
  expect(tracked()).toEqual([`tcp ${neighbour} ${target}`])
})

it('more connections than one message holds are forgotten, also for several addresses at once', async () => {
  await send(machine, target, 1000)
  await send(neighbour, target, 300)
  expect(tracked()).toHaveLength(1300)
  await Promise.all([machine, neighbour, machine].map((address) => connections.forget(address)))
  expect(tracked()).toEqual([])
})

it('connections that are not allowed any more are cut, and it is said of each where it goes', async () => {
  await begin(machine, target)
  await begin(machine, elsewhere, 80)
  await begin(neighbour, target)
  await send(machine, target)
  const seen: Flow[] = []
  await connections.cut(machine, (flow) => {
    seen.push(flow)
    return flow.redirected
  })
  expect(seen.toSorted((a, b) => a.port - b.port)).toEqual(
    [
      { protocol: 'tcp', address: elsewhere, port: 80, redirected: true },
      { protocol: 'udp', address: target, port: 10_000, redirected: false },
      { protocol: 'tcp', address: target, port, redirected: false },
    ].toSorted((a, b) => a.port - b.port),
  )
  expect(tracked()).toEqual([`tcp ${machine} ${elsewhere}`, `tcp ${neighbour} ${target}`])
})

it('an interface has carried nothing until a packet has passed it, and one that is gone may have', async () => {
  const ip = async (...args: string[]) => await runOrThrow('ip', args, { timeoutMs: 10_000 })
  const [one, other] = ['bcnct-1', 'bcnct-2']
  await ip('link', 'add', one, 'type', 'veth', 'peer', 'name', other)
  try {
    for (const name of [one, other]) await ip('link', 'set', name, 'addrgenmode', 'none', 'arp', 'off', 'up')
    expect(await Promise.all([one, other].map(hasCarried))).toEqual([false, false])
    await ip('addr', 'add', '10.198.77.1/30', 'dev', one)
    const socket = createSocket('udp4')
    await new Promise((resolve) => socket.send('x', 9, '10.198.77.2', resolve))
    socket.close()
    expect(await Promise.all([one, other].map(hasCarried))).toEqual([true, true])
  } finally {
    await ip('link', 'del', one)
  }
  expect(await hasCarried(one)).toBe(true)
})
