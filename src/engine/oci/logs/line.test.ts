import { expect, it } from 'vitest'
import { parseLogLine } from './line.ts'

it('parseLogLine returns the time, stream and text of a line', () => {
  expect(parseLogLine('2026-11-21T04:04:09.022360294+00:00 stderr F disk full: 3%')).toEqual({
    at: new Date('2026-11-21T04:04:09.022Z'),
    stream: 'stderr',
    partial: false,
    text: 'disk full: 3%',
  })
})

it('parseLogLine marks a line that continues in the next record', () => {
  expect(parseLogLine('2026-11-21T04:04:09.022360294+00:00 stdout P abc')?.partial).toBe(true)
})

it('parseLogLine accepts an empty line', () => {
  expect(parseLogLine('2026-11-21T04:04:09.022360294+00:00 stdout F ')?.text).toBe('')
})

it('parseLogLine returns null for malformed input', () => {
  for (const text of [
    '',
    'garbage',
    '2026-11-21T04:04:09.0Z stdin F x',
    'yesterday-at-some-point-or-so stdout F x',
  ]) {
    expect(parseLogLine(text)).toBeNull()
  }
})
