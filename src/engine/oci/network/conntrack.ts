// Encodes and decodes messages of the kernel's connection tracking (ctnetlink, netlink-messages.ts). Pure.

import {
  attribute,
  DONE,
  ERROR,
  FAMILY_IPV4,
  find,
  FLAG_DUMP,
  FLAG_REQUEST,
  messagesIn,
  nested,
  question,
  type Range,
} from './netlink-messages.ts'

/** Which address of a connection's first packet. */
export type Side = 'source' | 'target'

/** A connection as the kernel lists it, by its first packet. */
export type Tracked = {
  source: string
  target: string
  protocol: number
  /** Of the target; 0 for a protocol without ports. */
  port: number
  /** From which its answers come, which is not its target if that was translated. */
  answeredBy: string
  /** What names it to the kernel. */
  name: Buffer
}

/** Of the subsystem ctnetlink. */
const messages = { connection: 0x100, get: 0x101, delete: 0x102 } as const

const attributes = { original: 1, reply: 2, id: 12, zone: 18, filter: 25 } as const
const tupleAttributes = { addresses: 1, protocol: 2 } as const
const addressAttributes = { source: 1, target: 2 } as const
const protocolAttributes = { number: 1, targetPort: 3 } as const
const filterAttributes = { original: 1 } as const
/** What of the original tuple a filter compares. */
const compared = { source: 1, target: 2 } as const

/** Requests the connections with an address. Kernels before 5.8 list all of them. */
export function askForConnections(side: Side, address: string): Buffer {
  const wanted = attribute(addressAttributes[side], addressBytes(address))
  const flags = Buffer.alloc(4)
  // In the machine's byte order.
  flags.writeUInt32LE(compared[side])
  return question(messages.get, FLAG_REQUEST | FLAG_DUMP, FAMILY_IPV4, [
    nested(attributes.original, [nested(tupleAttributes.addresses, [wanted])]),
    nested(attributes.filter, [attribute(filterAttributes.original, flags)]),
  ])
}

/** Requests that the kernel forgets a connection. It answers only if it refuses. */
export function deleteConnection({ name }: Pick<Tracked, 'name'>): Buffer {
  return question(messages.delete, FLAG_REQUEST, FAMILY_IPV4, [name])
}

/** Throws if the kernel refused, and for bytes that are not a complete answer. */
export function readConnections(answer: Buffer): { found: Tracked[]; isLast: boolean } {
  const found: Tracked[] = []
  let isLast = false
  for (const { type, body } of messagesIn(answer)) {
    if (type === DONE || type === ERROR) isLast = true
    if (type !== messages.connection) continue
    const tracked = readConnection(answer, body)
    if (tracked) found.push(tracked)
  }
  return { found, isLast }
}

function readConnection(answer: Buffer, body: Range): Tracked | null {
  const original = find(answer, body, attributes.original)
  const addresses = find(answer, original, tupleAttributes.addresses)
  const protocol = find(answer, original, tupleAttributes.protocol)
  const [source, target] = [addressAttributes.source, addressAttributes.target].map((type) =>
    readAddress(answer, find(answer, addresses, type)),
  )
  const reply = find(answer, find(answer, body, attributes.reply), tupleAttributes.addresses)
  const answeredBy = readAddress(answer, find(answer, reply, addressAttributes.source))
  const number = find(answer, protocol, protocolAttributes.number)
  const port = find(answer, protocol, protocolAttributes.targetPort)
  if (!source || !target || !answeredBy || !number) return null
  return {
    source,
    target,
    protocol: answer.readUInt8(number.from),
    port: port ? answer.readUInt16BE(port.from) : 0,
    answeredBy,
    name: nameOf(answer, body),
  }
}

/** As the kernel wrote it, so that whatever a protocol has in it is there. */
function nameOf(answer: Buffer, body: Range): Buffer {
  const parts = [attributes.original, attributes.id, attributes.zone].flatMap((type) => {
    const part = find(answer, body, type)
    if (!part) return []
    const value = answer.subarray(part.from, part.to)
    return [type === attributes.original ? nested(type, [value]) : attribute(type, value)]
  })
  return Buffer.concat(parts)
}

function readAddress(answer: Buffer, at: Range | null): string | null {
  return at && at.to - at.from === 4 ? [...answer.subarray(at.from, at.to)].join('.') : null
}

function addressBytes(address: string): Buffer {
  return Buffer.from(address.split('.').map(Number))
}
