// Encodes and decodes messages of the kernel's packet filter (nfnetlink, nf_tables). Pure. Only the queries that run
// several times a second use this, and the changes that every start of a machine waits for; everything else uses nft.
//
// A message is a header of 16 bytes, the filter's own of 4, then attributes: length, type, value, each padded to 4
// bytes. Headers and attributes have the machine's byte order (little-endian), values the network's.

import { constants } from 'node:os'

/** An element of a set of address pairs, and the packets it has counted. */
export type Counted = { source: number; target: number; packets: number }

/** A change of one element of a set or a map of the family `inet`. `value`: of a map. */
export type ElementChange = { op: 'add' | 'delete'; set: string; key: Buffer; value?: Buffer }

/** One answer of the kernel. It is `disturbed` if a change came between it and the one before. */
export type Part = { counted: Counted[]; isLast: boolean; isDisturbed: boolean }

const MESSAGE_HEADER = 16
const FILTER_HEADER = 4
const ATTRIBUTE_HEADER = 4

const FLAG_REQUEST = 0x1
const FLAG_ANSWER = 0x4
const FLAG_CREATE = 0x400
const FLAG_DUMP_DISTURBED = 0x10
const FLAG_DUMP = 0x300

const ERROR = 2
const DONE = 3
const FAMILY_INET = 1
const FAMILY_IPV4 = 2
/** The messages between these two take effect together or not at all. */
const BATCH_BEGIN = 0x10
const BATCH_END = 0x11
const SUBSYSTEM = 10
const NESTED = 0x8000

/** Of the subsystem nf_tables. */
const messages = {
  elements: 0xa0c,
  getElements: 0xa0d,
  deleteElements: 0xa0e,
  generation: 0xa0f,
  getGeneration: 0xa10,
} as const

const listAttributes = { table: 1, set: 2, elements: 3 } as const
const elementAttributes = { key: 1, data: 2, expression: 7 } as const
const expressionAttributes = { data: 2 } as const
const counterAttributes = { packets: 2 } as const
const dataAttributes = { value: 1 } as const
const generationAttributes = { id: 1 } as const

/** Requests all elements of a set of the family `ip`. */
export function askForElements({ table, set }: { table: string; set: string }): Buffer {
  return question(messages.getElements, FLAG_REQUEST | FLAG_DUMP, FAMILY_IPV4, [
    attribute(listAttributes.table, `${table}\0`),
    attribute(listAttributes.set, `${set}\0`),
  ])
}

/** Requests the number of the last change of the rules of this network namespace. */
export function askForGeneration(): Buffer {
  return question(messages.getGeneration, FLAG_REQUEST, 0, [])
}

/** Requests changes that take effect together. The kernel answers the last one; if it refuses another one, that comes first. */
export function changeElements(table: string, changes: ElementChange[]): Buffer {
  const asked = changes.map(({ op, set, key, value }, index) => {
    const element = nested(1, [
      nested(elementAttributes.key, [attribute(dataAttributes.value, key)]),
      ...(value === undefined
        ? []
        : [nested(elementAttributes.data, [attribute(dataAttributes.value, value)])]),
    ])
    const answer = index === changes.length - 1 ? FLAG_ANSWER : 0
    const [type, flags] = op === 'add' ? [messages.elements, FLAG_CREATE] : [messages.deleteElements, 0]
    return question(type, FLAG_REQUEST | flags | answer, FAMILY_INET, [
      attribute(listAttributes.table, `${table}\0`),
      attribute(listAttributes.set, `${set}\0`),
      nested(listAttributes.elements, [element]),
    ])
  })
  return Buffer.concat([batchMark(BATCH_BEGIN), ...asked, batchMark(BATCH_END)])
}

/** Throws if the kernel refused what it was asked for. */
export function readVerdict(answer: Buffer): void {
  const [message] = messagesIn(answer)
  if (message?.type !== ERROR) throw new Error('the kernel did not say whether it made the changes')
}

/** Throws if the kernel refused, and for bytes that are not a complete answer. */
export function readElements(answer: Buffer): Part {
  const part: Part = { counted: [], isLast: false, isDisturbed: false }
  for (const { type, flags, body } of messagesIn(answer)) {
    if ((flags & FLAG_DUMP_DISTURBED) !== 0) part.isDisturbed = true
    if (type === DONE) part.isLast = true
    if (type !== messages.elements) continue
    const list = find(answer, body, listAttributes.elements)
    for (const element of list ? attributesIn(answer, list) : []) {
      const counted = readCounted(answer, element)
      if (counted) part.counted.push(counted)
    }
  }
  return part
}

export function readGeneration(answer: Buffer): number {
  for (const { type, body } of messagesIn(answer)) {
    const id = type === messages.generation ? find(answer, body, generationAttributes.id) : null
    if (id) return answer.readUInt32BE(id.from)
  }
  throw new Error('the kernel did not say which change of the rules was the last')
}

function readCounted(answer: Buffer, element: Range): Counted | null {
  const key = find(answer, find(answer, element, elementAttributes.key), dataAttributes.value)
  const expression = find(answer, element, elementAttributes.expression)
  const counter = find(answer, expression, expressionAttributes.data)
  const packets = find(answer, counter, counterAttributes.packets)
  if (!key || !packets) return null
  return {
    source: answer.readUInt32BE(key.from),
    target: answer.readUInt32BE(key.from + 4),
    packets: answer.readUInt32BE(packets.from) * 2 ** 32 + answer.readUInt32BE(packets.from + 4),
  }
}

/** A range of the bytes of an answer. */
type Range = { from: number; to: number }
type Message = { type: number; flags: number; body: Range }

function messagesIn(answer: Buffer): Message[] {
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

function attributesIn(answer: Buffer, { from, to }: Range): (Range & { type: number })[] {
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

function find(answer: Buffer, within: Range | null, type: number): Range | null {
  if (!within) return null
  return attributesIn(answer, within).find((each) => each.type === type) ?? null
}

function question(type: number, flags: number, family: number, attributes: Buffer[]): Buffer {
  const header = Buffer.alloc(MESSAGE_HEADER + FILTER_HEADER)
  const length = attributes.reduce((sum, each) => sum + each.length, header.length)
  header.writeUInt32LE(length, 0)
  header.writeUInt16LE(type, 4)
  header.writeUInt16LE(flags, 6)
  header.writeUInt8(family, MESSAGE_HEADER)
  return Buffer.concat([header, ...attributes])
}

function batchMark(type: number): Buffer {
  const mark = question(type, FLAG_REQUEST, 0, [])
  mark.writeUInt16BE(SUBSYSTEM, MESSAGE_HEADER + 2)
  return mark
}

function nested(type: number, attributes: Buffer[]): Buffer {
  return attribute(type | NESTED, Buffer.concat(attributes))
}

function attribute(type: number, value: string | Buffer): Buffer {
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
