import { Writable } from 'node:stream'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createTestClock } from '../../test/support/clock.ts'
import { tellBoundMet } from './bound-met.ts'
import { MINUTE } from './clock.ts'

it('who meets a bound is told once a minute, with how often it was', () => {
  const lines: Record<string, unknown>[] = []
  const write = (chunk: Buffer, _encoding: string, done: () => void) => {
    lines.push(JSON.parse(chunk.toString()) as Record<string, unknown>)
    done()
  }
  const clock = createTestClock()
  const app = { log: pino(new Writable({ write })), clock }
  for (let time = 0; time < 1000; time += 1) tellBoundMet(app, { bound: 'disk', by: 'team_a' })
  tellBoundMet(app, { bound: 'disk', by: 'team_b' })
  clock.advance(MINUTE)
  tellBoundMet(app, { bound: 'disk', by: 'team_a' })
  expect(lines.map(({ bound, by, times }) => [bound, by, times])).toEqual([
    ['disk', 'team_a', 1],
    ['disk', 'team_b', 1],
    ['disk', 'team_a', 1000],
  ])
})
