// Output of commands as JSON events, byte for byte (reliability Z7).

import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ExecOutputEvent } from '../../contract/exec.ts'
import { outputFrames } from './output-frames.ts'

const bytesOf = ({ data, encoding }: ExecOutputEvent) => Buffer.from(data, encoding ?? 'utf8')

function framed(chunks: Buffer[]): ExecOutputEvent[] {
  const frames = outputFrames()
  return [...chunks.flatMap((chunk) => frames.push(chunk)), ...frames.end()]
}

/** Cuts the bytes at the given places. */
function cut(bytes: Buffer, places: number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end))
}

test('output frames neither lose nor add a byte, for any bytes cut at any places', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array)),
    fc.string({ unit: 'grapheme', maxLength: 100 }).map((text) => Buffer.from(text)),
    fc
      .tuple(fc.string({ unit: 'grapheme' }), fc.uint8Array({ maxLength: 5 }))
      .map(([text, tail]) => Buffer.concat([Buffer.from(text), tail])),
  )
  fc.assert(
    fc.property(bytes, fc.array(fc.nat(1000), { maxLength: 10 }), (whole, places) => {
      const events = framed(cut(whole, places))
      expect(Buffer.concat(events.map(bytesOf))).toEqual(whole)
    }),
    { numRuns: 1000 },
  )
})

test('output frames carry text as text, wherever it is cut', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 50 }).filter((text) => text.isWellFormed()),
      fc.array(fc.nat(1000), { maxLength: 10 }),
      (text, places) => {
        const events = framed(cut(Buffer.from(text), places))
        expect(events.every(({ encoding }) => encoding === undefined)).toBe(true)
        expect(events.map(({ data }) => data).join('')).toBe(text)
      },
    ),
  )
})

test('output frames carry invalid UTF-8 as base64, and the text behind it as text again', () => {
  const frames = outputFrames()
  expect(frames.push(Buffer.from([0xff, 0xfe]))).toEqual([{ data: '//4=', encoding: 'base64' }])
  expect(frames.push(Buffer.from('ä'))).toEqual([{ data: 'ä' }])
})

test('output frames carry an unfinished character at the end of the stream', () => {
  const frames = outputFrames()
  expect(frames.push(Buffer.from([0xe2, 0x82]))).toEqual([])
  expect(frames.end()).toEqual([{ data: '4oI=', encoding: 'base64' }])
  expect(frames.end()).toEqual([])
})
