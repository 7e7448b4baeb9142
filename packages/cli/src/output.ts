// Prints tables and colours for people, and JSON for programs. Text that a unit wrote is cleaned before it appears
// in a table on a terminal; everywhere else it is unchanged.

import type { WriteStream } from 'node:tty'
import { byteSize } from '../../../src/lib/byte-size.ts'

/** Decided by NO_COLOR, FORCE_COLOR and whether the output is a terminal. */
export function hasColour(stream: { isTTY?: boolean }): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = process.env
  if (NO_COLOR) return false
  if (FORCE_COLOR) return FORCE_COLOR !== '0'
  return stream.isTTY === true && TERM !== 'dumb'
}

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, magenta: 35 } as const
export type Colour = keyof typeof codes

export function paint(
  text: string,
  colour: Colour | null,
  stream: { isTTY?: boolean } = process.stdout,
): string {
  return colour !== null && hasColour(stream) ? `\u001b[${codes[colour]}m${text}\u001b[0m` : text
}

/** Waits until the other end has room: a slow reader holds back what is read. */
export async function write(
  text: string | Uint8Array,
  stream: NodeJS.WritableStream = process.stdout,
): Promise<void> {
  if (stream.write(text)) return
  const { promise, resolve } = withResolvers()
  stream.once('drain', resolve)
  await promise
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>((yes) => (resolve = yes))
  return { promise, resolve }
}

export async function printJson(value: unknown): Promise<void> {
  await write(`${JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0)}\n`)
}

export async function print(line: string): Promise<void> {
  await write(`${line}\n`)
}

/** For people alone, beside the answer. */
export function note(line: string): void {
  process.stderr.write(`${line}\n`)
}

export type Cell = string | { text: string; colour: Colour | null }

/** Columns in a terminal, tabs in a pipe. Rows that come later have no heads, and `least` widths as those before. */
export async function printTable(
  heads: string[] | null,
  rows: Cell[][],
  least: number[] = [],
): Promise<void> {
  const textOf = (cell: Cell) => clean(typeof cell === 'string' ? cell : cell.text)
  if (!process.stdout.isTTY) {
    for (const row of heads ? [heads, ...rows] : rows) await print(row.map(textOf).join('\t'))
    return
  }
  const widths = (heads ?? rows[0] ?? []).map((_, column) =>
    Math.max(
      least[column] ?? 0,
      heads?.[column]?.length ?? 0,
      ...rows.map((row) => textOf(row[column] ?? '').length),
    ),
  )
  if (heads) {
    const line = heads.map((head, column) => head.padEnd(widths[column] ?? 0)).join('  ')
    await print(paint(line.trimEnd(), 'dim'))
  }
  for (const row of rows) {
    const cells = row.map((cell, column) => {
      const text = column === row.length - 1 ? textOf(cell) : textOf(cell).padEnd(widths[column] ?? 0)
      return typeof cell === 'string' ? text : paint(text, cell.colour)
    })
    await print(cells.join('  '))
  }
}

/** Without what moves a terminal's cursor or changes its title. */
export function clean(text: string): string {
  // oxlint-disable-next-line no-control-regex -- these are what is taken out
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ')
}

const STATE_COLOURS: Record<string, Colour> = {
  running: 'green',
  sleeping: 'magenta',
  error: 'red',
  stopped: 'dim',
  destroyed: 'dim',
}

export const stateCell = (state: string): Cell => ({ text: state, colour: STATE_COLOURS[state] ?? 'yellow' })

/** "in 14m", "2h ago", or "now". */
export function relative(time: string | null): string {
  if (time === null) return '-'
  const seconds = Math.round((Date.parse(time) - Date.now()) / 1000)
  const size = Math.abs(seconds)
  // A service whose clock is a little ahead has just been used.
  if (size === 0) return 'now'
  const text =
    size < 60
      ? `${size}s`
      : size < 3600
        ? `${Math.round(size / 60)}m`
        : size < 86_400
          ? `${Math.round(size / 3600)}h`
          : `${Math.round(size / 86_400)}d`
  return seconds >= 0 ? `in ${text}` : `${text} ago`
}

export type Progress = { add: (bytes: number) => void; end: () => void }

/** Shows the progress of a copy on a terminal; prints nothing otherwise. */
export function progress(what: string, total: number | null): Progress {
  const stream: WriteStream = process.stderr
  if (!stream.isTTY || process.env.TERM === 'dumb') return { add: () => {}, end: () => {} }
  let done = 0
  const of = total === null ? '' : ` of ${byteSize(total)}`
  const show = () => stream.write(`\r${byteSize(done)}${of} ${what}\u001b[K`)
  const timer = setInterval(show, 120)
  return {
    add: (bytes) => void (done += bytes),
    end: () => {
      clearInterval(timer)
      stream.write('\r\u001b[K')
    },
  }
}

/** Says how far it is, until the signal aborts. */
export type Follow = (say: (text: string) => void, signal: AbortSignal) => Promise<void>

/**
 * Shows a spinner on a terminal, with the seconds and with what `follow` says. Elsewhere, as in a job of CI, each stage
 * is a line of standard error, from the third second on.
 */
export async function waiting<T>(what: string, work: Promise<T>, follow?: Follow): Promise<T> {
  const stream: WriteStream = process.stderr
  if (!stream.isTTY || process.env.TERM === 'dumb') return await waitingInLines(what, work, follow)
  const frames = ['◐', '◓', '◑', '◒']
  let frame = 0
  let stage = ''
  const beganMs = Date.now()
  const over = new AbortController()
  follow?.((text) => (stage = `: ${clean(text)}`), over.signal).catch(() => {})
  const timer = setInterval(() => {
    const seconds = Math.floor((Date.now() - beganMs) / 1000)
    const line = `${frames[frame++ % 4]} ${seconds < 2 ? '' : `${seconds}s `}${what}${stage}`
    // A line that is wider than the terminal would stay behind.
    stream.write(`\r${line.slice(0, Math.max(0, stream.columns - 1))}\u001b[K`)
  }, 120)
  try {
    return await work
  } finally {
    over.abort()
    clearInterval(timer)
    stream.write('\r\u001b[K')
  }
}

const QUIET_MS = 3000

async function waitingInLines<T>(what: string, work: Promise<T>, follow?: Follow): Promise<T> {
  if (!follow) return await work
  const beganMs = Date.now()
  const over = new AbortController()
  let told = ''
  let stage = ''
  const tell = () => {
    const seconds = Math.floor((Date.now() - beganMs) / 1000)
    if (stage !== '' && stage !== told && Date.now() - beganMs >= QUIET_MS)
      note(`${seconds}s ${what}: ${stage}`)
    if (Date.now() - beganMs >= QUIET_MS) told = stage
  }
  // The stage alone, not each line of the log beside it.
  follow((text) => {
    stage = clean(text).split(':')[0] ?? ''
    tell()
  }, over.signal).catch(() => {})
  const timer = setInterval(tell, QUIET_MS)
  try {
    return await work
  } finally {
    over.abort()
    clearInterval(timer)
  }
}
