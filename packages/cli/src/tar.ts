// Writes and reads a tar archive of one file, for files above 1 MB.

const BLOCK = 512

/** What the archive of one file begins with, which was written now. `name`: up to 100 bytes. */
export function headerOf(name: string, bytes: number): Uint8Array<ArrayBuffer> {
  const header = Buffer.alloc(BLOCK)
  header.write(name, 0, 100)
  header.write('0000644\u00000000000\u00000000000\0', 100, 'latin1')
  const octal = (number: number) => number.toString(8).padStart(11, '0')
  header.write(`${octal(bytes)}\0${octal(Math.floor(Date.now() / 1000))}\0        0`, 124, 'latin1')
  header.write('ustar\u000000', 257, 'latin1')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return new Uint8Array(header)
}

/** What it ends with: up to a whole block, and two more that are empty. */
export const trailerOf = (bytes: number): Uint8Array<ArrayBuffer> =>
  new Uint8Array(((BLOCK - (bytes % BLOCK)) % BLOCK) + 2 * BLOCK)

export type ArchivedFile = { bytes: number; content: AsyncGenerator<Uint8Array> }

/** Long names come before their file, in entries of their own. */
const BESIDE = new Set(['x', 'g', 'L', 'K'])

/**
 * The file of that name that an archive begins with; null where it begins with a directory, a link or the like.
 * `content` throws where the archive ends before the file does.
 */
export async function fileIn(archive: AsyncIterable<Uint8Array>, name: string): Promise<ArchivedFile | null> {
  const pieces = archive[Symbol.asyncIterator]()
  let rest: Uint8Array = new Uint8Array()
  async function* take(bytes: number): AsyncGenerator<Uint8Array> {
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
  for (;;) {
    const parts: Uint8Array[] = []
    for await (const part of take(BLOCK)) parts.push(part)
    const header = Buffer.concat(parts)
    const bytes = Number.parseInt(header.toString('latin1', 124, 135), 8)
    const type = header.toString('latin1', 156, 157)
    if (type === '0' || type === '\0') return isOf(header, name) ? { bytes, content: take(bytes) } : null
    if (!BESIDE.has(type)) return null
    for await (const piece of take(Math.ceil(bytes / BLOCK) * BLOCK)) void piece
  }
}

/** A long name is cut in the header itself. */
const isOf = (header: Buffer, name: string) =>
  Buffer.byteLength(name) > 90 || header.toString('utf8', 0, 100).replace(/\0.*$/s, '') === `./${name}`
