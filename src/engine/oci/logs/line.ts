// Parses a line that conmon wrote: `<RFC 3339 time> <stream> <P|F> <text>`; P marks a line that continues.

export type RowHead = { stream: 'stdout' | 'stderr'; partial: boolean }
/** `text`: its bytes. A character may begin in one row of a line and end in the next. */
export type LogRow = RowHead & { at: Date; text: Buffer }

const SPACE = 32
const STDOUT = Buffer.from(' stdout ')
const STDERR = Buffer.from(' stderr ')
const [PARTIAL, FINAL] = Buffer.from('PF')
/** The longest time that a row begins with, and the space after it. */
const TIME_BYTES = 41
const HEAD = /^(\S{20,40}) (stdout|stderr) ([PF]) ?/
const HEAD_BYTES = TIME_BYTES + 'stdout P '.length

/** Returns null if it is not a row. */
export function parseLogRow(row: Buffer): LogRow | null {
  const match = HEAD.exec(row.toString('latin1', 0, HEAD_BYTES))
  if (!match) return null
  // Nanoseconds exceed the precision of a Date.
  const at = new Date((match[1] ?? '').replace(/(\.\d{3})\d*/, '$1'))
  if (Number.isNaN(at.getTime())) return null
  return {
    at,
    stream: match[2] === 'stderr' ? 'stderr' : 'stdout',
    partial: match[3] === 'P',
    text: row.subarray(match[0].length),
  }
}

/** The same of a row's head alone, which takes a fraction of the time. */
export function parseRowHead(bytes: Buffer, begin: number): RowHead | null {
  let time = begin
  while (time - begin < TIME_BYTES && bytes[time] !== SPACE) time += 1
  const stream = isAt(bytes, time, STDOUT) ? 'stdout' : isAt(bytes, time, STDERR) ? 'stderr' : null
  const tag = bytes[time + STDOUT.length]
  return stream !== null && (tag === PARTIAL || tag === FINAL) ? { stream, partial: tag === PARTIAL } : null
}

function isAt(bytes: Buffer, at: number, word: Buffer): boolean {
  for (let index = 0; index < word.length; index += 1) if (bytes[at + index] !== word[index]) return false
  return true
}
