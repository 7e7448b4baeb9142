import { expect, it } from 'vitest'
import { parseLogLine } from './line.ts'

it('a line has its time, stream and text', () => {
  expect(parseLogLine('2026-11-21T04:04:09.022360294+00:00 stderr F disk full: 3%')).toEqual({
    at: new Date('2026-11-21T04:04:09.022Z'),
    stream: 'stderr',
    partial: false,
    text: 'disk full: 3%',
  })
})

it('a line that goes on says so', () => {
  expect(parseLogLine('2026-11-21T04:04:09.022360294+00:00 stdout P abc')?.partial).toBe(true)
})

it('an empty line is a line', () => {
  expect(parseLogLine('2026-11-21T04:04:09.022360294+00:00 stdout F ')?.text).toBe('')
})

it('what is no line is none', () => {
  for (const text of [
    '',
    'garbage',
    '2026-11-21T04:04:09.0Z stdin F x',
    'yesterday-at-some-point-or-so stdout F x',
  ]) {
    expect(parseLogLine(text)).toBeNull()
  }
})
