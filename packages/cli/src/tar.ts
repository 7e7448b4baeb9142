// Writes and reads the entries of tar archives: files, directories and links. Names are strings of bytes ("latin1"), so
// that each one that a file system has passes as it is.

const BLOCK = 512

export type Entry = {
  type: 'file' | 'directory' | 'link'
  name: string
  mode: number
  /** Of a file. */
  bytes: number
  /** What a link leads to. */
  target: string
}

/** An entry as it was read. A hard link's target is the name of an earlier file; `other` is a device or the like. */
export type ReadEntry = Omit<Entry, 'type'> & {
  type: Entry['type'] | 'hard link' | 'other'
  /** To be read before the next entry. It throws where the archive ends before the file does. */
  content: AsyncGenerator<Uint8Array>
}

const flags = { file: '0', 'hard link': '1', link: '2', directory: '5' } as const
/** Of entries before another one: its long name, and the long target of its link. */
const LONG_NAME = 'L'
const LONG_TARGET = 'K'

/** What precedes the content of an entry. */
export function headerOf({ type, name, mode, bytes, target }: Entry): Buffer {
  return Buffer.concat([
    name.length > 99 ? long(LONG_NAME, name) : Buffer.alloc(0),
    target.length > 99 ? long(LONG_TARGET, target) : Buffer.alloc(0),
    block(flags[type], { name, mode, bytes, target }),
  ])
}

function long(flag: string, text: string): Buffer {
  const content = Buffer.from(`${text}\0`, 'latin1')
  const header = block(flag, { name: '././@LongLink', mode: 0o644, bytes: content.length, target: '' })
  return Buffer.concat([header, content, paddingOf(content.length)])
}

function block(flag: string, { name, mode, bytes, target }: Omit<Entry, 'type'>): Buffer {
  const header = Buffer.alloc(BLOCK)
  const octal = (number: number, digits: number) => `${number.toString(8).padStart(digits, '0')}\0`
  const now = Math.floor(Date.now() / 1000)
  header.write(name, 0, 99, 'latin1')
  header.write(`${octal(mode, 7)}${octal(0, 7)}${octal(0, 7)}${octal(bytes, 11)}${octal(now, 11)}`, 100)
  header.write(`        ${flag}`, 148)
  header.write(target, 157, 99, 'latin1')
  header.write('ustar\u000000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}

/** What follows the content of a file: up to a whole block. */
export const paddingOf = (bytes: number): Buffer => Buffer.alloc((BLOCK - (bytes % BLOCK)) % BLOCK)

/** What ends an archive. */
export const ending = (): Buffer => Buffer.alloc(2 * BLOCK)

export async function* entriesIn(archive: AsyncIterable<Uint8Array>): AsyncGenerator<ReadEntry> {
  const take = taker(archive)
  const read = async (bytes: number) => {
    const parts: Uint8Array[] = []
    for await (const part of take(bytes)) parts.push(part)
    return Buffer.concat(parts)
  }
  let [longName, longTarget] = ['', '']
  for (;;) {
    const header = await read(BLOCK)
    if (header.every((byte) => byte === 0)) return
    const flag = header.toString('latin1', 156, 157).replace('\0', flags.file)
    const bytes = Number.parseInt(header.toString('latin1', 124, 135), 8)
    if (flag === LONG_NAME || flag === LONG_TARGET || flag === 'x' || flag === 'g') {
      const text = textOf(await read(bytes))
      await read(paddingOf(bytes).length)
      if (flag === LONG_NAME) longName = text
      if (flag === LONG_TARGET) longTarget = text
      continue
    }
    let left = bytes
    const content = async function* () {
      for await (const piece of take(left)) {
        left -= piece.length
        yield piece
      }
    }
    yield {
      type:
        (Object.entries(flags).find(([, each]) => each === flag)?.[0] as ReadEntry['type'] | undefined) ??
        'other',
      name: longName || textOf(header.subarray(0, 100)),
      mode: Number.parseInt(header.toString('latin1', 100, 107), 8) & 0o777,
      bytes,
      target: longTarget || textOf(header.subarray(157, 257)),
      content: content(),
    }
    ;[longName, longTarget] = ['', '']
    await read(left)
    await read(paddingOf(bytes).length)
  }
}

const textOf = (field: Buffer) => field.toString('latin1').replace(/\0.*$/s, '')

/** Gives the next bytes of the archive. */
function taker(archive: AsyncIterable<Uint8Array>): (bytes: number) => AsyncGenerator<Uint8Array> {
  const pieces = archive[Symbol.asyncIterator]()
  let rest: Uint8Array = new Uint8Array()
  return async function* (bytes) {
    for (let left = bytes; left > 0; ) {
      if (rest.length === 0) {
        const next = await pieces.next()
        if (next.done) throw new Error('The archive ended early.')
        rest = next.value
      }
      const piece = rest.subarray(0, left)
      rest = rest.subarray(piece.length)
      left -= piece.length
      yield piece
    }
  }
}
