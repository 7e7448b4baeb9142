import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { runOrThrow } from '../../../lib/process.ts'
import {
  adding,
  addStarting,
  closingPort,
  commandsOf,
  deleting,
  machineElement,
  type MachineChange,
  memberElements,
  openingPort,
} from './firewall-elements.ts'
import { namesOf } from './names.ts'
import { openNetfilter } from './netfilter.ts'
import { applyRules } from './nft.ts'

/** Tables of this file: one is changed by the kernel's own messages, the other by nft. */
const tables = ['direct', 'by-nft'].map((which) => ({
  ...namesOf({ id: 'nfct', subnet: '10.199.0.0/16' }),
  table: `berth_test_${which.replace('-', '_')}`,
}))
const [direct, byNft] = tables as [(typeof tables)[0], (typeof tables)[0]]

const netfilter = openNetfilter()
const ports = ['bnfct-1', 'bnfct-2']
const ip = async (...args: string[]) => await runOrThrow('ip', args, { timeoutMs: 10_000 })
const removeTables = async () => {
  const commands = tables.flatMap(({ table }) =>
    ['inet', 'netdev'].flatMap((family) => [
      `add table ${family} ${table}`,
      `delete table ${family} ${table}`,
    ]),
  )
  await applyRules(commands)
}
beforeAll(async () => {
  const [port = '', peer = ''] = ports
  await ip('link', 'add', port, 'type', 'veth', 'peer', 'name', peer)
})
beforeEach(async () => {
  await removeTables()
  await applyRules(
    tables.map(
      ({ table }) => `table inet ${table} {
  map groups { type ipv4_addr : mark; }
  set peers { type mark . ipv4_addr; }
  set machines { type ifname . ipv4_addr; counter; }
  set starting { type ipv4_addr; flags timeout; timeout 30s; }
}
table netdev ${table} {
  chain admit { meta protocol ip accept; }
}`,
    ),
  )
})
afterAll(async () => {
  netfilter.close()
  await removeTables()
  await ip('link', 'del', ports[0] ?? '')
})

const listing = async (table: string) => {
  const listed = ['inet', 'netdev'].map((family) =>
    runOrThrow('nft', ['list', 'table', family, table], { timeoutMs: 10_000 }),
  )
  return (await Promise.all(listed))
    .join('')
    .replaceAll(table, 'T')
    .replaceAll(/expires \w+/g, 'expires')
}

const start = (port: string, address: string, group: number): MachineChange[] => [
  ...memberElements(address, group).map(adding),
  adding(machineElement(port, address)),
  ...addStarting(address),
]

it('elements that the kernel is asked for directly are those that nft makes', async () => {
  const changes = [
    ...start('bnfct-1', '10.199.0.7', 1),
    ...start('bnfct-2', '10.199.0.8', 4_000_000_000),
    ...start('bnfct-2', '10.199.0.8', 4_000_000_000),
    ...start('bnfct-3', '10.199.255.254', 258),
  ]
  const gone = [...memberElements('10.199.0.7', 1), machineElement('bnfct-1', '10.199.0.7')].map(deleting)
  for (const some of [changes, gone]) {
    expect(await netfilter.change(direct.table, some)).toBe(true)
    await applyRules(some.flatMap((each) => commandsOf(byNft, each)))
    const found = await listing(direct.table)
    expect(found).toBe(await listing(byNft.table))
    expect(found).toContain('10.199.0.8 : 0xee6b2800')
  }
})

it('of changes of which one is refused, none is made, and the next ones are', async () => {
  const before = await listing(direct.table)
  const refused = [...start('bnfct-1', '10.199.0.7', 1), deleting(machineElement('bnfct-9', '10.199.0.9'))]
  expect(await netfilter.change(direct.table, refused)).toBe(false)
  expect(await netfilter.change(direct.table, refused.toReversed())).toBe(false)
  expect(await netfilter.change('berth_test_none', start('bnfct-1', '10.199.0.7', 1))).toBe(false)
  expect(await listing(direct.table)).toBe(before)
  expect(await netfilter.change(direct.table, start('bnfct-1', '10.199.0.7', 1))).toBe(true)
  expect(await listing(direct.table)).toContain('"bnfct-1" . 10.199.0.7')
})

it('chains of interfaces that the kernel is asked for directly are those that nft makes', async () => {
  const opened = ports.map(openingPort)
  const changes = [
    opened,
    [deleting(machineElement('bnfct-1', '10.199.0.7')), ...ports.map(closingPort)],
  ] as const
  await applyRules(tables.flatMap((of) => commandsOf(of, adding(machineElement('bnfct-1', '10.199.0.7')))))
  const before = await listing(direct.table)
  for (const some of changes) {
    expect(await netfilter.change(direct.table, [...some])).toBe(true)
    await applyRules(some.flatMap((each) => commandsOf(byNft, each)))
    expect(await listing(direct.table)).toBe(await listing(byNft.table))
  }
  expect(before).not.toContain('hook ingress')
  expect(await listing(direct.table)).not.toContain('hook ingress')
  expect(await netfilter.change(direct.table, opened)).toBe(true)
  const listed = await listing(direct.table)
  expect(listed).toMatch(
    /chain in-1 \{\s*type filter hook ingress device "bnfct-1" priority \S+; policy drop;\s*jump admit/,
  )
  const refused = [closingPort('bnfct-1'), closingPort('bnfct-9')]
  expect(await netfilter.change(direct.table, refused)).toBe(false)
  expect(await listing(direct.table)).toBe(listed)
})

it('the number of the latest change is the same after own changes, and another one after those of others', async () => {
  const first = netfilter.generation()
  const machine = [adding(machineElement('bnfct-1', '10.199.0.7'))]
  expect(await netfilter.change(direct.table, machine)).toBe(true)
  // The kernel has it, and makes no change of that.
  expect(await netfilter.change(direct.table, machine)).toBe(true)
  expect(await netfilter.change(direct.table, start('bnfct-1', '10.199.0.7', 1))).toBe(true)
  expect(await netfilter.change('berth_test_none', machine)).toBe(false)
  expect(netfilter.generation()).toBe(first)
  const other = openNetfilter()
  expect(await other.change(byNft.table, machine)).toBe(true)
  other.close()
  expect(netfilter.generation()).toBe(first + 1)
  await applyRules([`add element inet ${direct.table} machines { "bnfct-9" . 10.199.0.9 }`])
  expect(netfilter.generation()).toBe(first + 2)
})
