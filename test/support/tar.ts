// Writes tar archives entry by entry, also ones that no archiver would make.

export type TarEntry = {
  /** Bytes where it is to be no text. */
  name: string | Buffer
  /** Default: a file when there is content, else a directory. */
  type?: 'file' | 'hardlink' | 'symlink' | 'char' | 'block' | 'directory' | 'fifo'
  content?: Buffer | string
  mode?: number
  uid?: number
  gid?: number
  /** What a link leads to. */
  target?: string
  device?: [major: number, minor: number]
  /** Extended headers, such as `SCHILY.xattr.security.capability`. */
  pax?: Record<string, Buffer | string>
}

const typeFlags = {
  file: '0',
  hardlink: '1',
  symlink: '2',
  char: '3',
  block: '4',
  directory: '5',
  fifo: '6',
}
const BLOCK = 512

export function tar(entries: TarEntry[]): Buffer {
  return Buffer.concat([...entries.map(tarEntry), Buffer.alloc(2 * BLOCK)])
}

export function tarEntry(entry: TarEntry): Buffer {
  const content = Buffer.from(entry.content ?? '')
  const type = entry.type ?? (entry.content === undefined ? 'directory' : 'file')
  const records = Object.entries(entry.pax ?? {}).map(([name, value]) => paxRecord(name, value))
  const body = Buffer.concat(records)
  const extended = body.length === 0 ? [] : [header('x', { name: 'pax' }, body.length), padded(body)]
  return Buffer.concat([...extended, header(typeFlags[type], entry, content.length), padded(content)])
}

function header(flag: string, entry: TarEntry, size: number): Buffer {
  const block = Buffer.alloc(BLOCK)
  Buffer.from(entry.name).copy(block, 0, 0, 100)
  block.write(octal(entry.mode ?? (flag === '5' ? 0o755 : 0o644), 8), 100)
  block.write(octal(entry.uid ?? 0, 8), 108)
  block.write(octal(entry.gid ?? 0, 8), 116)
  block.write(octal(size, 12), 124)
  block.write(octal(0, 12), 136)
  block.write('        ', 148)
  block.write(flag, 156)
  block.write(entry.target ?? '', 157, 100)
  block.write('ustar\0', 257)
  block.write('00', 263)
  const [major, minor] = entry.device ?? [0, 0]
  block.write(octal(major, 8), 329)
  block.write(octal(minor, 8), 337)
  const checksum = block.reduce((sum, byte) => sum + byte, 0)
  block.write(`${checksum.toString(8).padStart(6, '0')}\0 `, 148)
  return block
}

/** `LENGTH NAME=VALUE\n`, where the length counts its own digits. */
function paxRecord(name: string, value: Buffer | string): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${name}=`), Buffer.from(value), Buffer.from('\n')])
  let length = rest.length
  while (length !== rest.length + String(length).length) length = rest.length + String(length).length
  return Buffer.concat([Buffer.from(String(length)), rest])
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, '0')}\0`
}

function padded(content: Buffer): Buffer {
  return Buffer.concat([content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)])
}
