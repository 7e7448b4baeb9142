import { Writable } from 'node:stream'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createTestClock } from '../../test/support/clock.ts'
import { logLimitReached } from './limit-reached.ts'
import { MINUTE } from './clock.ts'

function listen() {
  const lines: Record<string, unknown>[] = []
  const write = (chunk: Buffer, _encoding: string, done: () => void) => {
    lines.push(JSON.parse(chunk.toString()) as Record<string, unknown>)
    done()
  }
  const clock = createTestClock()
  return { lines, clock, app: { log: pino(new Writable({ write })), clock } }
}

it('a reached limit is logged once a minute per owner, with the number of times', () => {
  const { lines, clock, app } = listen()
  for (let time = 0; time < 1000; time += 1) logLimitReached(app, { bound: 'disk', by: 'team_a' })
  logLimitReached(app, { bound: 'disk', by: 'team_b' })
  clock.advance(MINUTE)
  logLimitReached(app, { bound: 'disk', by: 'team_a' })
  expect(lines.map(({ bound, by, times }) => [bound, by, times])).toEqual([
    ['disk', 'team_a', 1],
    ['disk', 'team_b', 1],
    ['disk', 'team_a', 1000],
  ])
})

it('reached limits cause at most a hundred log lines a minute for any number of owners', () => {
  const { lines, clock, app } = listen()
  const crowd = (from: number) => {
    for (let peer = from; peer < from + 5000; peer += 1)
      logLimitReached(app, { bound: 'visits', by: `peer ${peer}` })
  }
  crowd(0)
  expect(lines).toHaveLength(100)
  clock.advance(MINUTE)
  crowd(5000)
  expect(lines).toHaveLength(201)
  expect(lines[100]).toMatchObject({ bound: 'others', by: null, times: 4900 })
})
