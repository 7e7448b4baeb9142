// The smallest tar that any tar reads: regular files, owned by root, long names by GNU's extension.

export type TarFile = { path: string; content: Buffer; mode: number }

const BLOCK = 512
const NAME_BYTES = 100

export function createTar(files: TarFile[]): Buffer {
  const entries = files.flatMap(({ path, content, mode }) => {
    const name = Buffer.from(path.replace(/^\/+/, ''))
    const long =
      name.length >= NAME_BYTES
        ? entry(Buffer.from('././@LongLink'), 'L', Buffer.concat([name, Buffer.alloc(1)]), 0)
        : []
    return [...long, ...entry(name.subarray(0, NAME_BYTES - 1), '0', content, mode)]
  })
  return Buffer.concat([...entries, Buffer.alloc(2 * BLOCK)])
}

function entry(name: Buffer, type: string, content: Buffer, mode: number): Buffer[] {
  const header = Buffer.alloc(BLOCK)
  name.copy(header, 0)
  header.write(octal(mode, 8), 100)
  header.write(octal(0, 8), 108)
  header.write(octal(0, 8), 116)
  header.write(octal(content.length, 12), 124)
  header.write(octal(Math.floor(Date.now() / 1000), 12), 136)
  header.write(type, 156)
  header.write('ustar\x0000', 257, 'latin1')
  header.fill(' ', 148, 156)
  header.write(
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      7,
    )} `,
    148,
  )
  const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)
  return [header, content, padding]
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, '0')}\0`
}
