// Encodes and decodes messages of the kernel's rules (nf_tables, netlink-messages.ts). Pure. Only the queries that run
// several times a second use this, and the changes that every start and every end of a machine waits for; everything else
// uses nft.

import {
  attribute,
  attributesIn,
  DONE,
  ERROR,
  FAMILY_INET,
  FAMILY_IPV4,
  FAMILY_NETDEV,
  find,
  FLAG_ANSWER,
  FLAG_APPEND,
  FLAG_CREATE,
  FLAG_DUMP,
  FLAG_DUMP_DISTURBED,
  FLAG_REQUEST,
  MESSAGE_HEADER,
  messagesIn,
  nested,
  question,
  type Range,
} from './netlink-messages.ts'

/** An element of a set of address pairs, and the packets it has counted. */
export type Counted = { source: number; target: number; packets: number }

/** A change of one element of a set or a map of the family `inet`. `value`: of a map. */
export type ElementChange = { op: 'add' | 'delete'; set: string; key: Buffer; value?: Buffer }

/**
 * Makes or removes the chain, of the family `netdev`, of what comes in at an interface: it drops all but what the chain
 * `jump` accepts.
 */
export type PortChange =
  | { op: 'open'; chain: string; port: string; jump: string }
  | { op: 'close'; chain: string }

export type Change = ElementChange | PortChange

/** One answer of the kernel. It is `disturbed` if a change came between it and the one before. */
export type Part = { counted: Counted[]; isLast: boolean; isDisturbed: boolean }

/** The messages between these two take effect together or not at all. */
const BATCH_BEGIN = 0x10
const BATCH_END = 0x11
const SUBSYSTEM = 10
/** Of a message's header. */
const FLAGS_AT = 6

/** Of the subsystem nf_tables. */
const messages = {
  chain: 0xa03,
  deleteChain: 0xa05,
  rule: 0xa06,
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
const chainAttributes = { table: 1, name: 3, hook: 4, policy: 5, type: 7 } as const
const hookAttributes = { number: 1, priority: 2, device: 3 } as const
const ruleAttributes = { table: 1, chain: 2, expressions: 4 } as const
const namedExpression = { name: 1, data: 2 } as const
const immediateAttributes = { register: 1, data: 2 } as const
const verdictAttributes = { code: 1, chain: 2 } as const
const DATA_IS_VERDICT = 2
const LIST_ELEMENT = 1
const INGRESS = 0
const DROP = 0
const VERDICT_REGISTER = 0
const JUMP = -3

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
export function requestChanges(table: string, changes: Change[]): Buffer {
  const asked = changes.flatMap((change) => messagesOf(table, change))
  const last = asked.at(-1)
  last?.writeUInt16LE(last.readUInt16LE(FLAGS_AT) | FLAG_ANSWER, FLAGS_AT)
  return Buffer.concat([batchMark(BATCH_BEGIN), ...asked, batchMark(BATCH_END)])
}

function messagesOf(table: string, change: Change): Buffer[] {
  if (change.op === 'open') return openPort(table, change)
  if (change.op === 'close') {
    const named = [
      attribute(chainAttributes.table, `${table}\0`),
      attribute(chainAttributes.name, `${change.chain}\0`),
    ]
    return [question(messages.deleteChain, FLAG_REQUEST, FAMILY_NETDEV, named)]
  }
  return [changeElement(table, change)]
}

function changeElement(table: string, { op, set, key, value }: ElementChange): Buffer {
  const element = nested(LIST_ELEMENT, [
    nested(elementAttributes.key, [attribute(dataAttributes.value, key)]),
    ...(value === undefined
      ? []
      : [nested(elementAttributes.data, [attribute(dataAttributes.value, value)])]),
  ])
  const [type, flags] = op === 'add' ? [messages.elements, FLAG_CREATE] : [messages.deleteElements, 0]
  return question(type, FLAG_REQUEST | flags, FAMILY_INET, [
    attribute(listAttributes.table, `${table}\0`),
    attribute(listAttributes.set, `${set}\0`),
    nested(listAttributes.elements, [element]),
  ])
}

function openPort(table: string, { chain, port, jump }: PortChange & { op: 'open' }): Buffer[] {
  const verdict = nested(DATA_IS_VERDICT, [
    attribute(verdictAttributes.code, number(JUMP)),
    attribute(verdictAttributes.chain, `${jump}\0`),
  ])
  const immediate = nested(LIST_ELEMENT, [
    attribute(namedExpression.name, 'immediate\0'),
    nested(namedExpression.data, [
      attribute(immediateAttributes.register, number(VERDICT_REGISTER)),
      nested(immediateAttributes.data, [verdict]),
    ]),
  ])
  return [
    question(messages.chain, FLAG_REQUEST | FLAG_CREATE, FAMILY_NETDEV, [
      attribute(chainAttributes.table, `${table}\0`),
      attribute(chainAttributes.name, `${chain}\0`),
      nested(chainAttributes.hook, [
        attribute(hookAttributes.number, number(INGRESS)),
        attribute(hookAttributes.priority, number(0)),
        attribute(hookAttributes.device, `${port}\0`),
      ]),
      attribute(chainAttributes.policy, number(DROP)),
      attribute(chainAttributes.type, 'filter\0'),
    ]),
    question(messages.rule, FLAG_REQUEST | FLAG_CREATE | FLAG_APPEND, FAMILY_NETDEV, [
      attribute(ruleAttributes.table, `${table}\0`),
      attribute(ruleAttributes.chain, `${chain}\0`),
      nested(ruleAttributes.expressions, [immediate]),
    ]),
  ]
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
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

function batchMark(type: number): Buffer {
  const mark = question(type, FLAG_REQUEST, 0, [])
  mark.writeUInt16BE(SUBSYSTEM, MESSAGE_HEADER + 2)
  return mark
}
