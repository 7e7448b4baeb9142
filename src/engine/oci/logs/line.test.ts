import { expect, it } from 'vitest'
import { parseLogRow, parseRowHead } from './line.ts'

const parsed = (row: string) => parseLogRow(Buffer.from(row))

it('parseLogRow returns the time, stream and text of a line', () => {
  expect(parsed('2026-11-21T04:04:09.022360294+00:00 stderr F disk full: 3%')).toEqual({
    at: new Date('2026-11-21T04:04:09.022Z'),
    stream: 'stderr',
    partial: false,
    text: Buffer.from('disk full: 3%'),
  })
})

it('parseLogRow marks a line that continues in the next record', () => {
  expect(parsed('2026-11-21T04:04:09.022360294+00:00 stdout P abc')?.partial).toBe(true)
})

it('parseLogRow accepts an empty line', () => {
  expect(parsed('2026-11-21T04:04:09.022360294+00:00 stdout F ')?.text).toHaveLength(0)
})

it('parseLogRow returns null for malformed input', () => {
  for (const text of [
    '',
    'garbage',
    '2026-11-21T04:04:09.0Z stdin F x',
    'yesterday-at-some-point-or-so stdout F x',
  ]) {
    expect(parsed(text)).toBeNull()
  }
})

it('parseRowHead returns of a row what parseLogRow does, and null for malformed input', () => {
  const at = '2026-11-21T04:04:09.022360294+00:00'
  for (const text of [`${at} stderr F disk full`, `${at} stdout P abc`, `${at} stdout F `]) {
    const head = parseRowHead(Buffer.from(`before\n${text}\n`), 'before\n'.length)
    expect(head).toEqual({ stream: parsed(text)?.stream, partial: parsed(text)?.partial })
  }
  for (const text of ['', 'garbage', `${at} stdin F x`, `${at} stdout X y`, `${'x'.repeat(50)} stdout F y`]) {
    expect(parseRowHead(Buffer.from(`${text}\n`), 0)).toBeNull()
  }
})
