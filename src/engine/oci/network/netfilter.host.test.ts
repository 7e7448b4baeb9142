import { afterAll, beforeEach, expect, it } from 'vitest'
import { runOrThrow } from '../../../lib/process.ts'
import {
  adding,
  addStarting,
  commandOf,
  deleting,
  machineElement,
  type MachineChange,
  memberElements,
} from './firewall-rules.ts'
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
const remove = async () => {
  await applyRules(tables.flatMap(({ table }) => [`add table inet ${table}`, `delete table inet ${table}`]))
}
beforeEach(async () => {
  await remove()
  await applyRules(
    tables.map(
      ({ table }) => `table inet ${table} {
  map groups { type ipv4_addr : mark; }
  set peers { type mark . ipv4_addr; }
  set machines { type ifname . ipv4_addr; counter; }
  set starting { type ipv4_addr; flags timeout; timeout 30s; }
}`,
    ),
  )
})
afterAll(async () => {
  netfilter.close()
  await remove()
})

const listing = async (table: string) =>
  (await runOrThrow('nft', ['list', 'table', 'inet', table], { timeoutMs: 10_000 }))
    .replace(table, 'T')
    .replaceAll(/expires \w+/g, 'expires')

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
    await applyRules(some.map((each) => commandOf(byNft, each)))
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
