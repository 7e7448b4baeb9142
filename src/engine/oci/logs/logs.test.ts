// The cost of a read depends on the size of the answer, not on the size of the log: bytes and rows are counted.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { LogQuery } from '../../engine.ts'
import { readLogs } from './logs.ts'
import { createPaths } from '../paths.ts'

const KB = 1024
const BEGAN = Date.UTC(2026, 0, 1)
const LINES = 60_000
const timeOf = (line: number) => new Date(BEGAN + line * 10)
const textOf = (line: number) => `line ${line} ${'x'.repeat(100)}`
const row = (at: Date, text: string, tag = 'F', stream = 'stdout') =>
  `${at.toISOString().replace('Z', '000000+00:00')} ${stream} ${tag} ${text}\n`

let dataDir: string
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'berth-logs-'))
  await writeLog(
    'full',
    Array.from({ length: LINES }, (_, line) => row(timeOf(line), textOf(line))),
  )
})
afterAll(async () => await rm(dataDir, { recursive: true }))

const paths = () => createPaths({ dataDir, runDir: dataDir })

/** Writes parts of a few megabytes, as log rotation does. */
async function writeLog(id: string, rows: string[]): Promise<void> {
  const { logs } = paths().machine(id)
  await mkdir(logs, { recursive: true })
  const perPart = 25_000
  for (let part = 1; (part - 1) * perPart < rows.length; part += 1) {
    const isLast = part * perPart >= rows.length
    const name = isLast ? '1.log' : `1.${part}.log`
    await writeFile(join(logs, name), rows.slice((part - 1) * perPart, part * perPart).join(''))
  }
}

async function read(id: string, query: Partial<LogQuery>) {
  const work = { bytes: 0, rows: 0 }
  const asked = { after: null, since: null, limit: 100, ...query }
  const lines = await readLogs({ machines: new Map(), paths: paths() }, id, asked, work)
  return { lines, work }
}

it('readLogs finds lines by time and the newest lines in 10 MB without a scan of the whole log', async () => {
  for (const line of [0, 1, 24_999, 25_000, 25_001, 31_234, 49_999, 50_000, LINES - 1]) {
    const { lines, work } = await read('full', { since: timeOf(line), limit: 3 })
    expect(lines.map(({ text }) => text)).toEqual(
      [0, 1, 2]
        .map((n) => line + n)
        .filter((n) => n < LINES)
        .map(textOf),
    )
    expect([line, work.bytes < 1200 * KB, work.rows < 1000]).toEqual([line, true, true])
  }
  const between = await read('full', { since: new Date(timeOf(31_234).getTime() - 5), limit: 1 })
  expect(between.lines[0]?.text).toBe(textOf(31_234))
  const future = await read('full', { since: new Date(BEGAN + 10 ** 12) })
  expect(future.lines).toEqual([])
  expect([future.work.bytes < 1200 * KB, future.work.rows < 1000]).toEqual([true, true])
  const newest = await read('full', { limit: 500 })
  expect(newest.lines.map(({ text }) => text)).toEqual(
    Array.from({ length: 500 }, (_, n) => textOf(LINES - 500 + n)),
  )
  expect([newest.work.bytes < 1600 * KB, newest.work.rows < 3000]).toEqual([true, true])
})

it('readLogs returns a line of 100 KB whole and splits a longer one into parts marked as continued', async () => {
  const pieces = (bytes: number, letter: string) =>
    Array.from({ length: Math.ceil(bytes / 8000) }, (_, n) =>
      row(timeOf(n), letter.repeat(8000), n + 1 < Math.ceil(bytes / 8000) ? 'P' : 'F'),
    )
  await writeLog('long', [
    row(timeOf(0), 'first'),
    ...pieces(104_000, 'a'),
    ...pieces(600_000, 'b'),
    row(timeOf(80), 'last'),
  ])
  const { lines } = await read('long', { since: new Date(0) })
  const shape = ({ text, continues }: (typeof lines)[number]) => [text[0], text.length, continues]
  expect(lines.slice(0, 2).map(shape)).toEqual([
    ['f', 5, undefined],
    ['a', 104_000, undefined],
  ])
  const rest =
    lines.length === 5
      ? lines.slice(2)
      : [...lines.slice(2), ...(await read('long', { after: lines.at(-1)?.cursor ?? '' })).lines]
  expect(rest.map(({ continues }) => continues)).toEqual([true, true, undefined, undefined])
  expect(rest.map(({ text }) => text).join('')).toBe('b'.repeat(600_000) + 'last')
  const page = await read('long', { limit: 2 })
  expect(page.lines.at(-1)?.text).toBe('last')
})

it('readLogs limits the size of an answer, and its last cursor continues where it ended', async () => {
  const big = (n: number) => `${n} ${'y'.repeat(7000)}`
  await writeLog(
    'large',
    Array.from({ length: 300 }, (_, n) => row(timeOf(n), big(n))),
  )
  const seen: string[] = []
  let { lines } = await read('large', { since: new Date(0), limit: 500 })
  while (lines.length > 0) {
    expect(lines.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThan(600 * KB)
    seen.push(...lines.map(({ text }) => text))
    lines = (await read('large', { after: lines.at(-1)?.cursor ?? '', limit: 500 })).lines
  }
  expect(seen).toEqual(Array.from({ length: 300 }, (_, n) => big(n)))
})

it('readLogs returns lines whole that began before the time asked for, across parts and rows of the other stream', async () => {
  const began = 24_000
  const ended = 26_000
  const rows = Array.from({ length: 30_000 }, (_, n) => row(timeOf(n), `short ${n}`))
  for (const [at, tag] of [
    [began, 'P'],
    [25_500, 'P'],
    [ended, 'F'],
  ] as const) {
    rows[at] = row(timeOf(at), `[${at}]`, tag, 'stderr')
  }
  await writeLog('mixed', rows)
  for (const since of [began + 1, 24_999, 25_000, 25_501, ended]) {
    const { lines } = await read('mixed', { since: timeOf(since), limit: 2500 })
    const long = lines.filter(({ stream }) => stream === 'stderr')
    expect([since, long.map(({ text }) => text)]).toEqual([since, [`[${began}][25500][${ended}]`]])
    expect(lines[0]?.text).toBe(since === ended ? `[${began}][25500][${ended}]` : `short ${since}`)
  }
  const newest = await read('mixed', { limit: 4001 })
  expect(newest.lines.find(({ stream }) => stream === 'stderr')?.text).toBe(`[${began}][25500][${ended}]`)
  const after = await read('mixed', { since: timeOf(ended + 1), limit: 10 })
  expect(after.lines.map(({ text }) => text)).toEqual(
    Array.from({ length: 10 }, (_, n) => `short ${ended + 1 + n}`),
  )
})
