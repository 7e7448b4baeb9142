// conmon cuts lines at any byte. Whatever a program printed as UTF-8 is read as it was; only bytes that are not become
// U+FFFD.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { LogLine, LogQuery } from '../../engine.ts'
import { createPaths } from '../paths.ts'
import { readLogs } from './logs.ts'

const CONMON_BYTES = 8192
const TEXT = 'aé€😀z'

let dataDir: string
beforeAll(async () => void (dataDir = await mkdtemp(join(tmpdir(), 'berth-characters-'))))
afterAll(async () => await rm(dataDir, { recursive: true }))

const paths = () => createPaths({ dataDir, runDir: dataDir })

const row = (bytes: Uint8Array | string, tag = 'F', stream = 'stdout') =>
  Buffer.concat([
    Buffer.from(`2026-01-01T00:00:00.000000000+00:00 ${stream} ${tag} `),
    Buffer.from(bytes),
    LINE_END,
  ])
const LINE_END = Buffer.from('\n')

/** The rows of one line as conmon writes it. */
function rowsOfLine(line: Buffer, bytes = CONMON_BYTES): Buffer[] {
  const rows: Buffer[] = []
  for (let begin = 0; begin < line.length; begin += bytes) {
    rows.push(row(line.subarray(begin, begin + bytes), begin + bytes < line.length ? 'P' : 'F'))
  }
  return rows
}

async function writeLog(id: string, rows: Buffer[], name = '1.log'): Promise<void> {
  const { logs } = paths().machine(id)
  await mkdir(logs, { recursive: true })
  await writeFile(join(logs, name), Buffer.concat(rows))
}

const read = async (id: string, query: Partial<LogQuery> = {}): Promise<LogLine[]> =>
  await readLogs({ machines: new Map(), paths: paths() }, id, {
    after: null,
    since: null,
    limit: 500,
    ...query,
  })

/** Reads a whole log one line at a time, each from the cursor of the one before. */
async function readByLine(id: string): Promise<LogLine[]> {
  const all: LogLine[] = []
  for (let page = await read(id, { since: new Date(0), limit: 1 }); page[0]; ) {
    all.push(page[0])
    page = await read(id, { after: page[0].cursor, limit: 1 })
  }
  return all
}

it('a character that two rows share is whole, wherever the cut is and whatever lies between the rows', async () => {
  const bytes = Buffer.from(TEXT)
  for (let cut = 1; cut < bytes.length; cut += 1) {
    const [first, second] = [bytes.subarray(0, cut), bytes.subarray(cut)]
    const rows = [row(first, 'P'), row('é', 'P', 'stderr'), row(second), row('€', 'F', 'stderr')]
    await writeLog(`cut-${cut}`, rows)
    const expected = [TEXT, 'é€']
    expect([cut, (await read(`cut-${cut}`)).map(({ text }) => text)]).toEqual([cut, expected])
    expect([cut, (await readByLine(`cut-${cut}`)).map(({ text }) => text)]).toEqual([cut, expected])
  }
})

it('a line that is printed byte by byte is whole, also where its end is the end of the run', async () => {
  const bytes = [...Buffer.from(TEXT)].map((byte) => row(Uint8Array.of(byte), 'P'))
  await writeLog('by-byte', bytes)
  expect((await read('by-byte')).map(({ text }) => text)).toEqual([TEXT])
  await writeLog('across-parts', bytes.slice(0, 5), '1.1.log')
  await writeLog('across-parts', bytes.slice(5))
  expect((await read('across-parts')).map(({ text }) => text)).toEqual([TEXT])
})

it.each([0, 1, 2, 3])(
  'a line of a megabyte of emoji after %s letters is whole in its pieces, read at once or one by one',
  async (letters) => {
    const line = 'x'.repeat(letters) + '😀'.repeat(260_000)
    const others = [row('beside é', 'P', 'stderr'), row('and on', 'F', 'stderr')]
    const rows = rowsOfLine(Buffer.from(line))
    const [begin = row(''), ...rest] = rows
    const id = `emoji-${letters}`
    await writeLog(id, [
      begin,
      ...others.slice(0, 1),
      ...rest.slice(0, 90),
      ...others.slice(1),
      ...rest.slice(90),
    ])
    const lines = await readByLine(id)
    const of = (stream: string) => lines.filter((each) => each.stream === stream)
    expect(of('stderr').map(({ text }) => text)).toEqual(['beside éand on'])
    expect(of('stdout').length).toBeGreaterThan(1)
    expect(of('stdout').every(({ text }) => text.isWellFormed())).toBe(true)
    expect(
      of('stdout')
        .map(({ text }) => text)
        .join('') === line,
    ).toBe(true)
    expect((await read(id)).some(({ text }) => text.includes('\ufffd'))).toBe(false)
  },
)

it('a line whose beginning is no longer kept begins with a whole character', async () => {
  const rows = rowsOfLine(Buffer.from(`x${'😀'.repeat(5000)}`))
  await writeLog('dropped', rows.slice(1), '1.2.log')
  const [line] = await read('dropped', { since: new Date(0) })
  expect(line?.text.replaceAll('😀', '')).toBe('')
})

it('bytes that are not UTF-8 become U+FFFD as they would in one piece', async () => {
  const lines = [
    [0x61, 0xff, 0x62],
    [0x80, 0x80, 0x61],
    [0xe2, 0x82, 0x41, 0xf0, 0x9f],
    [0xed, 0xa0, 0x80, 0xc0, 0xaf, 0xf5],
  ].map((bytes) => Buffer.from(bytes))
  for (const [nth, line] of lines.entries()) {
    for (let size = 1; size <= line.length; size += 1) {
      await writeLog(`invalid-${nth}-${size}`, rowsOfLine(line, size))
      const [told] = await read(`invalid-${nth}-${size}`)
      expect([nth, size, told?.text]).toEqual([nth, size, line.toString('utf8')])
    }
  }
})
