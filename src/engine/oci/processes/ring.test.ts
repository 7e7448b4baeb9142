import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { limits } from '../../../contract/limits.ts'
import { openRing, type Ring } from './ring.ts'

let directory: string
beforeEach(() => void (directory = mkdtempSync(join(tmpdir(), 'berth-ring-'))))
afterEach(() => rmSync(directory, { recursive: true }))

const out = (text: string) => ({ stream: 'stdout' as const, data: Buffer.from(text) })
const err = (text: string) => ({ stream: 'stderr' as const, data: Buffer.from(text) })
const told = (ring: Ring, after = 0, maxBytes = 1_000_000) =>
  ring.read(after, maxBytes).map(({ stream, data, end }) => [stream, data.toString(), end])

describe('the output ring of a process', () => {
  test('returns output in order with exact offsets, from any offset', () => {
    const ring = openRing(directory)
    for (const piece of [out('on'), out('e '), err('two '), out(''), out('three')]) ring.append(piece)
    expect(told(ring)).toEqual([
      ['stdout', 'one ', 4],
      ['stderr', 'two ', 8],
      ['stdout', 'three', 13],
    ])
    expect(told(ring, 6, 4)).toEqual([
      ['stderr', 'o ', 8],
      ['stdout', 'th', 10],
    ])
    expect(told(ring, 13)).toEqual([])
    expect(ring.bounds()).toEqual({ from: 0, to: 13 })
  })

  test('continues after the output of an earlier engine, also after a truncated record', () => {
    const first = openRing(directory)
    first.append(out('whole '))
    first.append(err('torn here'))
    first.close()
    const [file = ''] = readdirSync(directory)
    truncateSync(join(directory, file), statSync(join(directory, file)).size - 5)
    const second = openRing(directory)
    expect(second.bounds()).toEqual({ from: 0, to: 10 })
    second.append(err('!'))
    expect(told(second)).toEqual([
      ['stdout', 'whole ', 6],
      ['stderr', 'torn!', 11],
    ])
  })

  test('keeps about one megabyte, and its offsets continue to grow', () => {
    const ring = openRing(directory)
    const line = 'x'.repeat(1023) + '\n'
    for (let i = 0; i < 5000; i += 1) ring.append(i % 2 === 0 ? out(line) : err(line))
    const { from, to } = ring.bounds()
    expect(to).toBe(5000 * 1024)
    expect(to - from).toBeGreaterThan(limits.processOutputBytes * 0.95)
    const bytes = readdirSync(directory).reduce((sum, name) => sum + statSync(join(directory, name)).size, 0)
    expect(bytes).toBeLessThan(limits.processOutputBytes * 1.3)
    const [first] = ring.read(0, 2000)
    expect(first && first.end - first.data.length).toBe(from)
  })

  test('limits the number of pieces per read and the number of files', () => {
    const ring = openRing(directory)
    for (let i = 0; i < 100_000; i += 1) ring.append(i % 2 === 0 ? out('o') : err('e'))
    ring.close()
    expect(readdirSync(directory).length).toBeLessThanOrEqual(64)
    const { from, to } = ring.bounds()
    expect(to).toBe(100_000)
    const page = ring.read(0, 1_000_000)
    expect(page).toHaveLength(limits.processPagePieces)
    expect(page[0]?.end).toBe(from + 1)
    let seen = 0
    for (let after = 0; ; ) {
      const pieces = ring.read(after, 1_000_000)
      if (pieces.length === 0) break
      seen += pieces.length
      after = pieces.at(-1)?.end ?? 0
    }
    expect(seen).toBe(to - from)
  })
})
