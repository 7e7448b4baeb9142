// Encodes and decodes what every message of the kernel's packet filter has (nfnetlink). Pure.
//
// A message is a header of 16 bytes, the filter's own of 4, then attributes: length, type, value, each padded to 4
// bytes. Headers and attributes have the machine's byte order (little-endian), values the network's.

import { constants } from 'node:os'

export const MESSAGE_HEADER = 16
const FILTER_HEADER = 4
const ATTRIBUTE_HEADER = 4

export const FLAG_REQUEST = 0x1
export const FLAG_ANSWER = 0x4
export const FLAG_CREATE = 0x400
export const FLAG_APPEND = 0x800
export const FLAG_DUMP_DISTURBED = 0x10
export const FLAG_DUMP = 0x300

export const ERROR = 2
export const DONE = 3
export const FAMILY_INET = 1
export const FAMILY_IPV4 = 2
export const FAMILY_NETDEV = 5
const NESTED = 0x8000

/** A range of the bytes of an answer. */
export type Range = { from: number; to: number }
type Message = { type: number; flags: number; body: Range }

export function messagesIn(answer: Buffer): Message[] {
  const found: Message[] = []
  for (let at = 0; at < answer.length; ) {
    const length = answer.readUInt32LE(at)
    if (length < MESSAGE_HEADER || at + length > answer.length) throw new Error('a message is cut short')
    const type = answer.readUInt16LE(at + 4)
    if (type === ERROR || type === DONE) {
      const code = answer.readInt32LE(at + MESSAGE_HEADER)
      if (code < 0) throw refusal(code)
    }
    const body = { from: at + MESSAGE_HEADER + FILTER_HEADER, to: at + length }
    found.push({ type, flags: answer.readUInt16LE(at + 6), body })
    at += padded(length)
  }
  return found
}

export function attributesIn(answer: Buffer, { from, to }: Range): (Range & { type: number })[] {
  const found: (Range & { type: number })[] = []
  for (let at = from; at + ATTRIBUTE_HEADER <= to; ) {
    const length = answer.readUInt16LE(at)
    if (length < ATTRIBUTE_HEADER || at + length > to) throw new Error('an attribute is cut short')
    // The upper two bits describe the value's layout, which is known.
    const type = answer.readUInt16LE(at + 2) & 0x3fff
    found.push({ type, from: at + ATTRIBUTE_HEADER, to: at + length })
    at += padded(length)
  }
  return found
}

export function find(answer: Buffer, within: Range | null, type: number): Range | null {
  if (!within) return null
  return attributesIn(answer, within).find((each) => each.type === type) ?? null
}

export function question(type: number, flags: number, family: number, attributes: Buffer[]): Buffer {
  const header = Buffer.alloc(MESSAGE_HEADER + FILTER_HEADER)
  const length = attributes.reduce((sum, each) => sum + each.length, header.length)
  header.writeUInt32LE(length, 0)
  header.writeUInt16LE(type, 4)
  header.writeUInt16LE(flags, 6)
  header.writeUInt8(family, MESSAGE_HEADER)
  return Buffer.concat([header, ...attributes])
}

export function nested(type: number, attributes: Buffer[]): Buffer {
  return attribute(type | NESTED, Buffer.concat(attributes))
}

export function attribute(type: number, value: string | Buffer): Buffer {
  const content = Buffer.from(value)
  const length = ATTRIBUTE_HEADER + content.length
  const bytes = Buffer.alloc(padded(length))
  bytes.writeUInt16LE(length, 0)
  bytes.writeUInt16LE(type, 2)
  content.copy(bytes, ATTRIBUTE_HEADER)
  return bytes
}

function padded(length: number): number {
  return (length + 3) & ~3
}

function refusal(code: number): Error {
  const name = Object.entries(constants.errno).find(([, value]) => value === -code)?.[0] ?? `errno ${-code}`
  return Object.assign(new Error(`the packet filter refused: ${name}`), { code: name })
}
