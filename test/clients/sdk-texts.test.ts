// Text that the SDK makes of bytes that come in pieces.

import { expect, it } from 'vitest'
import { textOf } from '../../packages/sdk/src/command.ts'
import type { Process as ProcessInfo } from '../../packages/sdk/src/contract.ts'
import { Process } from '../../packages/sdk/src/processes.ts'
import type { Transport } from '../../packages/sdk/src/transport.ts'
import { boundedText } from '../../src/lib/bounded-text.ts'

const BYTES = Buffer.from('aé€😀\xff')
const cuts = Array.from(BYTES, (_, at) => at)
const twoPieces = (at: number) => [BYTES.subarray(0, at), BYTES.subarray(at)]

it('a character that two pieces share is whole, wherever the first one ends', () => {
  for (const at of cuts) {
    expect([at, textOf(twoPieces(at))]).toEqual([at, BYTES.toString()])
    const bounded = boundedText(100)
    for (const piece of twoPieces(at)) bounded.add(piece)
    expect([at, bounded.text()]).toEqual([at, BYTES.toString()])
  }
  expect(textOf([Buffer.from('\ufeffa')])).toBe('\ufeffa')
  expect(textOf([Buffer.of(0x61, 0xff)])).toBe('a\ufffd')
})

it('a text that is cut within a character ends before it', () => {
  const whole = Buffer.from('€€')
  expect([3, 4, 5, 6].map((length) => textOf([whole.subarray(0, length)], true))).toEqual([
    '€',
    '€',
    '€',
    '€€',
  ])
})

it('the text of a process is whole where a page of its output ends within a character', async () => {
  for (const at of cuts) {
    const pages = [...twoPieces(at), Buffer.alloc(0)].map((bytes, next) => ({
      output:
        bytes.length === 0 && next > 0
          ? []
          : [{ stream: 'stdout', data: bytes.toString('base64'), encoding: 'base64' }],
      next: next + 1,
    }))
    const transport = { json: () => Promise.resolve(pages.shift()) } as unknown as Transport
    const process = new Process(transport, { unitId: 'u', id: 'p' } as ProcessInfo)
    expect(await process.text()).toEqual({ stdout: BYTES.toString(), stderr: '' })
  }
})
