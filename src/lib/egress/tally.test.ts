import { describe, expect, test } from 'vitest'
import { MINUTE } from '../clock.ts'
import type { SeenLine } from './seen.ts'
import { createTally } from './tally.ts'

const line = (host: string, more: Partial<SeenLine> = {}): SeenLine => ({
  minute: 0,
  host,
  address: null,
  port: 443,
  protocol: 'tls',
  decision: 'refused',
  reason: 'not_listed',
  rule: null,
  secret: null,
  bytesIn: 0,
  bytesOut: 0,
  count: 1,
  ...more,
})
const told = ({ machine, host, count }: { machine: string; host: string | null; count: number }) =>
  `${machine} ${host} ×${count}`

describe('a tally', () => {
  test('adds up what is of the same kind, and tells it once', () => {
    const tally = createTally({ linesPerMinute: 10, lines: 10 })
    for (const host of ['a', 'b', 'a', 'a']) tally.add('m', line(host))
    expect(tally.take(10).map(told)).toEqual(['m a ×3', 'm b ×1'])
    expect(tally.size()).toBe(0)
  })

  test('has a number of lines for each machine and minute, and one for the rest, also after it was told', () => {
    const tally = createTally({ linesPerMinute: 2, lines: 100 })
    for (let name = 0; name < 1000; name++) {
      tally.add('greedy', line(`${name}`))
      if (name === 500) tally.take(100)
    }
    tally.add('other', line('a'))
    expect(tally.take(100).map(told)).toEqual(['greedy null ×499', 'other a ×1'])
    tally.add('greedy', line('next', { minute: MINUTE }))
    expect(tally.take(100).map(told)).toEqual(['greedy next ×1'])
  })

  test('never holds more than twice its bound, also of many machines', () => {
    const tally = createTally({ linesPerMinute: 50, lines: 10 })
    for (let name = 0; name < 1000; name++) tally.add(`machine ${name}`, line(`${name}`))
    expect(tally.size()).toBe(20)
  })

  test('counts the end of a connection in the line of its beginning', () => {
    const tally = createTally({ linesPerMinute: 1, lines: 10 })
    const counted = [tally.add('m', line('a')), tally.add('m', line('b'))]
    tally.add('m', line('a', { minute: MINUTE }))
    for (const each of counted) tally.add('m', { ...each, bytesIn: 7 })
    expect(tally.take(10)).toMatchObject([
      { minute: 0, host: 'a', bytesIn: 7, count: 1 },
      { minute: 0, host: null, reason: 'others', bytesIn: 7, count: 1 },
      { minute: MINUTE, host: 'a', bytesIn: 0, count: 1 },
    ])
  })
})
