// How the network recovers from interference (reliability I3, F25), and what it leaves behind (F5).

import { afterEach, describe, expect, test } from 'vitest'
import {
  DNS_PORT,
  FORBIDDEN,
  HOST,
  type Lab,
  openLab,
  PUBLIC,
} from '../../../../test/support/network-lab/lab.ts'

const PORT = 7000
/** Reliability I3 requires 5 s on an otherwise idle host. */
const BACK_MS = 15_000

let lab: Lab | null = null
afterEach(async () => {
  await lab?.close()
  lab = null
})

async function openWorld(): Promise<Lab> {
  lab = await openLab()
  await lab.serve(lab.outside, `${PUBLIC}:${PORT}`)
  return lab
}

describe('network rules that another program removes', () => {
  test('leave machines without any access when they are flushed while the engine is down', async () => {
    const { host, gateway, openNetwork, serve, reach, inside, leaks } = await openWorld()
    const network = await openNetwork()
    await network.recover([])
    const one = await network.attach({ machineId: 'one', group: 1, address: null })
    const two = await network.attach({ machineId: 'two', group: 1, address: null })
    await serve(two.namespacePath, `0.0.0.0:${PORT}`)
    await serve(host, `${HOST}:${PORT}`, `${gateway}:${DNS_PORT}`, `${gateway}:${PORT}`)
    const targets = [
      `tcp://${PUBLIC}:${PORT}`,
      `udp://${PUBLIC}:${PORT}`,
      `tcp://${two.address}:${PORT}`,
      ...[HOST, gateway].flatMap((address) => [`tcp://${address}:${PORT}`, `udp://${address}:${PORT}`]),
      `udp://${gateway}:53`,
      `udp://${gateway}:${DNS_PORT}`,
      ...FORBIDDEN.map((address) => `udp://${address}:${PORT}`),
    ]
    const [out, ...rest] = await reach(one.namespacePath, ...targets)
    expect(out).toBe(HOST)
    expect(rest[1]).toBe(one.address)

    await network.kill()
    await inside(host, 'nft', 'flush', 'ruleset')
    const nothing = targets.map(() => null)
    expect(await reach(one.namespacePath, ...targets)).toEqual(nothing)
    // An attacker outside the sandbox can set any destination address on a frame, but cannot learn the host's own.
    const broadcast = [
      'neigh',
      'replace',
      gateway,
      'lladdr',
      'ff:ff:ff:ff:ff:ff',
      'dev',
      'eth0',
      'nud',
      'permanent',
    ]
    await inside(one.namespacePath, 'ip', ...broadcast)
    expect(await reach(one.namespacePath, ...targets)).toEqual(nothing)
    expect(await leaks()).toEqual({ to: 0, from: 0 })

    const next = await openNetwork()
    const known = [one, two].map(({ address }, index) => ({
      machineId: ['one', 'two'][index] ?? '',
      group: 1,
      address,
      running: true,
      egress: null,
    }))
    expect(await next.recover(known)).toMatchObject({ adopted: 2, missing: [] })
    expect(await reach(two.namespacePath, `tcp://${PUBLIC}:${PORT}`)).toEqual([HOST])
  })

  test('are restored within seconds, whichever part was changed', async () => {
    const { host, openNetwork, reach, inside, instance, leaks } = await openWorld()
    const network = await openNetwork()
    await network.recover([])
    const { namespacePath, hostInterface } = await network.attach({
      machineId: 'one',
      group: 1,
      address: null,
    })
    const table = `berth_${instance.id}`
    const number = hostInterface.slice(hostInterface.indexOf('-') + 1)
    const disturbances = [
      ['nft', 'flush', 'ruleset'],
      ['nft', 'delete', 'table', 'inet', table],
      ['nft', 'delete', 'table', 'netdev', table],
      ['nft', 'flush', 'chain', 'inet', table, 'from_machine'],
      ['nft', 'insert', 'rule', 'inet', table, 'from_machine', 'drop'],
      ['nft', 'flush', 'set', 'inet', table, 'machines'],
      ['nft', 'delete', 'chain', 'netdev', table, `in-${number}`],
      ['ip', 'link', 'del', hostInterface],
      ['ip', 'route', 'flush', 'dev', hostInterface],
      ['sysctl', '-q', '-w', 'net.ipv4.conf.up0.forwarding=0'],
      ['sysctl', '-q', '-w', 'net.ipv4.ip_forward=0'],
    ]
    for (const [command = '', ...args] of disturbances) {
      await inside(host, command, ...args)
      const targets = [PUBLIC, ...FORBIDDEN].map((address) => `udp://${address}:${PORT}`)
      const isBack = async () => (await reach(namespacePath, ...targets))[0] === HOST
      const asked = [command, ...args].join(' ')
      await expect.poll(isBack, { timeout: BACK_MS, interval: 100, message: asked }).toBe(true)
    }
    expect((await leaks()).to).toBe(0)
  })

  test('include the gateway address and the blackhole route, which are restored too', async () => {
    const { host, openNetwork, inside, instance, gateway } = await openWorld()
    const network = await openNetwork()
    await network.recover([])
    await inside(host, 'ip', 'addr', 'del', `${gateway}/32`, 'dev', 'lo')
    await inside(host, 'ip', 'route', 'del', 'blackhole', instance.subnet)
    await expect
      .poll(() => inside(host, 'ip', 'addr', 'show', 'dev', 'lo'), { timeout: BACK_MS })
      .toContain(`${gateway}/32`)
    expect(await inside(host, 'ip', 'route')).toContain(`blackhole ${instance.subnet}`)
  })
})

describe('a host with other firewalls', () => {
  test('still lets machines communicate under a DROP policy, and gets its own rules back on close', async () => {
    const { host, openNetwork, reach, inside, serve, gateway, inventory } = await openWorld()
    await serve(lab?.outside ?? '', `${PUBLIC}:7001`)
    await inside(host, 'iptables', '-P', 'FORWARD', 'DROP')
    await inside(host, 'iptables', '-A', 'INPUT', '-j', 'DROP')
    for (const hook of ['forward', 'input']) {
      await inside(host, 'nft', 'add', 'table', 'inet', 'firewalld')
      const chain = `{ type filter hook ${hook} priority 10; policy accept; }`
      await inside(host, 'nft', 'add', 'chain', 'inet', 'firewalld', `filter_${hook}`, chain)
      await inside(host, 'nft', 'add', 'rule', 'inet', 'firewalld', `filter_${hook}`, 'reject')
    }
    const before = await inventory()

    const network = await openNetwork()
    await network.recover([])
    await inside(host, 'ip', 'link', 'set', 'lo', 'up')
    await serve(host, `${gateway}:${DNS_PORT}`)
    const { namespacePath, address } = await network.attach({ machineId: 'one', group: 1, address: null })
    const targets = [`tcp://${PUBLIC}:${PORT}`, `udp://${gateway}:53`]
    expect(await reach(namespacePath, ...targets)).toEqual([HOST, address])

    await inside(host, 'iptables', '-D', 'FORWARD', '1')
    await inside(host, 'iptables', '-F', 'FORWARD')
    await inside(host, 'nft', 'flush', 'chain', 'inet', 'firewalld', 'filter_forward')
    await inside(host, 'nft', 'add', 'rule', 'inet', 'firewalld', 'filter_forward', 'reject')
    await expect.poll(() => reach(namespacePath, ...targets), { timeout: BACK_MS }).toEqual([HOST, address])

    await network.release('one')
    await network.close({ removeAll: true })
    expect(await inventory()).toBe(before)
  })
})

describe('the network of the engine', () => {
  test('leaves the host unchanged after a close with removeAll', async () => {
    const { openNetwork, inventory } = await openWorld()
    const before = await inventory()
    const network = await openNetwork()
    await network.recover([])
    for (const machineId of ['one', 'two', 'three'])
      await network.attach({ machineId, group: 1, address: null })
    await network.detach('two')
    expect(await inventory()).not.toBe(before)
    await network.close({ removeAll: true })
    expect(await inventory()).toBe(before)
  })

  test('survives a crash, after which recovery adopts known machines and removes all others', async () => {
    const { host, openNetwork, serve, reach, inside, inventory } = await openWorld()
    const before = await inventory()
    const network = await openNetwork()
    await network.recover([])
    const kept = await network.attach({ machineId: 'kept', group: 1, address: null })
    const asleep = await network.attach({ machineId: 'asleep', group: 1, address: null })
    const stray = await network.attach({ machineId: 'stray', group: 1, address: null })
    await serve(kept.namespacePath, `0.0.0.0:${PORT}`)
    await network.kill()
    // A crash between two steps can leave a namespace half-made.
    await inside(
      host,
      'ip',
      'netns',
      'add',
      `${stray.namespacePath.split('/').at(-1)?.replace(/\d+$/, '9000')}`,
    )

    const next = await openNetwork()
    const report = await next.recover([
      { machineId: 'kept', group: 1, address: kept.address, running: true, egress: null },
      { machineId: 'asleep', group: 1, address: asleep.address, running: false, egress: null },
      {
        machineId: 'gone',
        group: 1,
        address: kept.address.replace(/\d+$/, '200'),
        running: true,
        egress: null,
      },
    ])
    expect(report).toMatchObject({ adopted: 1, missing: ['gone'] })
    expect(report.removed).toBeGreaterThanOrEqual(3)
    const links = await inside(host, 'ip', '-br', 'link')
    expect(links).toContain(kept.hostInterface)
    expect(links).not.toContain(`${stray.hostInterface}@`)
    expect(links).not.toContain(`${asleep.hostInterface}@`)

    const woken = await next.attach({ machineId: 'asleep', group: 1, address: asleep.address })
    expect(woken.address).toBe(asleep.address)
    expect(await reach(woken.namespacePath, `tcp://${kept.address}:${PORT}`)).toEqual([asleep.address])
    for (const machineId of ['kept', 'asleep', 'gone']) await next.release(machineId)
    await next.close({ removeAll: true })
    expect(await inventory()).toBe(before)
  })

  test('does not reuse a freed address soon, not even after a restart', async () => {
    const { openNetwork } = await openWorld()
    const network = await openNetwork()
    await network.recover([])
    const { address } = await network.attach({ machineId: 'first', group: 1, address: null })
    await network.release('first')
    const given: string[] = []
    for (let n = 0; n < 30; n++) {
      given.push((await network.attach({ machineId: `m${n}`, group: 1, address: null })).address)
    }
    await network.kill()
    const next = await openNetwork()
    await next.recover([])
    for (let n = 0; n < 10; n++) {
      given.push((await next.attach({ machineId: `n${n}`, group: 1, address: null })).address)
    }
    expect(given).not.toContain(address)
    expect(new Set(given).size).toBe(given.length)
  })

  test('gives a restarted machine its own address in a new namespace', async () => {
    const { openNetwork, inside, reach } = await openWorld()
    const network = await openNetwork()
    await network.recover([])
    const first = await network.attach({ machineId: 'one', group: 1, address: null })
    // Like gVisor: it moves the address into its own network stack, where it ends with the sandbox.
    await inside(first.namespacePath, 'ip', 'address', 'flush', 'dev', 'eth0')
    const again = await network.attach({ machineId: 'one', group: 1, address: first.address })
    expect(again.address).toBe(first.address)
    expect(again.namespacePath).not.toBe(first.namespacePath)
    expect(await reach(again.namespacePath, `tcp://${PUBLIC}:${PORT}`)).toEqual([HOST])

    await network.detach('one')
    await network.detach('one')
    const later = await network.attach({ machineId: 'one', group: 1, address: first.address })
    expect(await reach(later.namespacePath, `tcp://${PUBLIC}:${PORT}`)).toEqual([HOST])
    await expect(network.attach({ machineId: 'two', group: 1, address: first.address })).rejects.toThrow(
      'not free',
    )
  })

  test('attaches 40 machines at once, each with its own address and namespace', async () => {
    const { openNetwork, reach } = await openWorld()
    const network = await openNetwork()
    await network.recover([])
    const attached = await Promise.all(
      Array.from({ length: 40 }, (_, n) => network.attach({ machineId: `m${n}`, group: n, address: null })),
    )
    expect(new Set(attached.map((each) => each.address)).size).toBe(40)
    expect(new Set(attached.map((each) => each.namespacePath)).size).toBe(40)
    for (const { namespacePath } of attached.slice(-3)) {
      expect(await reach(namespacePath, `tcp://${PUBLIC}:${PORT}`)).toEqual([HOST])
    }
  })
})
