import { expect, it } from 'vitest'
import { DAY } from '../lib/clock.ts'
import { boundsFinding } from './bounds.ts'

it('the doctor names the callers that met a bound within a day, and ignores other log lines', () => {
  const now = new Date()
  const line = (by: string, ageMs: number, msg = 'a bound was met') =>
    JSON.stringify({ time: new Date(now.getTime() - ageMs), bound: 'disk', by, times: 2, msg })
  const log = [
    'end of a line, a bound was met"}',
    line('team_old', 2 * DAY),
    line('team_other', 0, 'a note'),
    line('team_now', 0),
    line('team_now', 1000),
  ]
  expect(boundsFinding(log.join('\n'), now)).toMatchObject({
    state: 'warn',
    detail: 'in the last day: disk by team_now (4 times)',
  })
  expect(boundsFinding('', now).state).toBe('ok')
})
