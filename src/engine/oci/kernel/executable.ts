// Makes static programs of a few bytes of machine code, for processes of ours in machines of any image.

const CODE_AT = 0x40_0000
/** Memory that a program may write to. */
export const MEMORY_AT = 0x60_0000
const MEMORY_BYTES = 0x10_0000
const HEADER_BYTES = 64
const SEGMENT_BYTES = 56
const MACHINE_X86_64 = 62

/** The code is of this architecture alone. */
export const canExecute = process.arch === 'x64'

/** `code`: in hexadecimal, with spaces. `texts` come right behind it. */
export function executable(code: string, texts = ''): Buffer {
  const text = Buffer.concat([Buffer.from(code.replaceAll(' ', ''), 'hex'), Buffer.from(texts)])
  const textAt = HEADER_BYTES + 2 * SEGMENT_BYTES
  const header = Buffer.alloc(HEADER_BYTES)
  header.write('7f454c46020101', 'hex')
  header.writeUInt16LE(2, 16)
  header.writeUInt16LE(MACHINE_X86_64, 18)
  header.writeUInt32LE(1, 20)
  header.writeBigUInt64LE(BigInt(CODE_AT + textAt), 24)
  header.writeBigUInt64LE(BigInt(HEADER_BYTES), 32)
  header.writeUInt16LE(HEADER_BYTES, 52)
  header.writeUInt16LE(SEGMENT_BYTES, 54)
  header.writeUInt16LE(2, 56)
  const READ_EXECUTE = 5
  const READ_WRITE = 6
  const bytes = textAt + text.length
  return Buffer.concat([
    header,
    segment({ flags: READ_EXECUTE, at: CODE_AT, fileBytes: bytes, bytes }),
    segment({ flags: READ_WRITE, at: MEMORY_AT, fileBytes: 0, bytes: MEMORY_BYTES }),
    text,
  ])
}

function segment(of: { flags: number; at: number; fileBytes: number; bytes: number }): Buffer {
  const described = Buffer.alloc(SEGMENT_BYTES)
  described.writeUInt32LE(1, 0)
  described.writeUInt32LE(of.flags, 4)
  described.writeBigUInt64LE(BigInt(of.at), 16)
  described.writeBigUInt64LE(BigInt(of.at), 24)
  described.writeBigUInt64LE(BigInt(of.fileBytes), 32)
  described.writeBigUInt64LE(BigInt(of.bytes), 40)
  described.writeBigUInt64LE(0x1000n, 48)
  return described
}
