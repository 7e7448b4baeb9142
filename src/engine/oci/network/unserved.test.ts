import { describe, expect, test } from 'vitest'
import { MINUTE } from '../../../lib/clock.ts'
import { seenLine } from '../../../lib/egress/seen.ts'
import type { MachineEgress } from '../../egress.ts'
import { createUnserved } from './unserved.ts'

const rules = (mode: MachineEgress['mode'], more: Partial<MachineEgress> = {}) => ({
  mode,
  allow: [],
  siblings: 'team' as const,
  stack: null,
  secrets: [],
  ...more,
})
const secret = { name: 'KEY', hosts: ['a.example.com'], placeholder: 'p', value: 'v' }
const of = (address: string, egress: MachineEgress) => ({ address, machine: address, group: 1, egress })
const listed = of('10.9.0.2', rules('listed', { allow: ['a.example.com'] }))

function setUp() {
  let nowMs = 10 * MINUTE
  const unserved = createUnserved(() => new Date(nowMs))
  const look = (isServed = false, restricted = [listed]) =>
    unserved.look(isServed, () => restricted).map(({ machine, minute }) => [machine, minute / MINUTE])
  return { unserved, look, pass: (ms: number) => (nowMs += ms) }
}

describe('a machine whose names nobody decides', () => {
  test('has one line a minute until the process is there', () => {
    const { look, pass } = setUp()
    expect(look()).toEqual([])
    expect(look()).toEqual([['10.9.0.2', 10]])
    pass(MINUTE / 2)
    expect(look()).toEqual([])
    pass(MINUTE / 2)
    expect(look()).toEqual([['10.9.0.2', 11]])
    expect(look(true)).toEqual([])
    expect(look(true)).toEqual([])
  })

  test('has none for an ordinary start of the process, also not for the second one', () => {
    const { look } = setUp()
    expect([look(), look(true), look(), look(true)].flat()).toEqual([])
  })

  test('has one of its own minute where it comes later', () => {
    const { look } = setUp()
    look()
    look()
    expect(look(false, [listed, of('10.9.0.3', rules('open', { secrets: [secret] }))])).toEqual([
      ['10.9.0.3', 10],
    ])
  })

  test('is none that reaches no host, or every host', () => {
    const { look } = setUp()
    const others = [of('10.9.0.4', rules('none')), of('10.9.0.5', rules('open', { siblings: 'none' }))]
    look()
    expect(look(false, others)).toEqual([])
  })

  test('has a line that the server takes', () => {
    const { unserved } = setUp()
    unserved.look(false, () => [listed])
    const [{ machine, ...line } = { machine: '' }] = unserved.look(false, () => [listed])
    expect([machine, seenLine.parse(line).reason]).toEqual(['10.9.0.2', 'not_enforced'])
  })
})
