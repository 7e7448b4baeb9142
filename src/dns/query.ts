// Parses the DNS queries of machines and encodes the answers. Pure, and never throws: the bytes are untrusted.

import { type Answer, decode, encode, type PacketOpt, type Question } from 'dns-packet'

export type Query = {
  id: number
  question: Question
  /** In lower case, without the final dot. */
  name: string
  recursionDesired: boolean
  /** The largest UDP answer that the client accepts; null without EDNS. */
  udpSize: number | null
  dnssecOk: boolean
}

/** The response codes used here, as in RFC 1035. */
export const rcodes = {
  ok: 0,
  formatError: 1,
  serverFailure: 2,
  noSuchName: 3,
  notImplemented: 4,
  refused: 5,
}
export type Rcode = keyof typeof rcodes

export type Parsed =
  | { kind: 'query'; query: Query }
  /** A query that can be parsed well enough to be refused. */
  | { kind: 'refusal'; bytes: Buffer }
  /** Gets no answer: it is not a query, or could be a reflected answer of another server. */
  | { kind: 'garbage' }

const FLAGS = { authoritative: 0x400, recursionDesired: 0x100, recursionAvailable: 0x80 }
const MAX_QUERY_BYTES = 1232
const MAX_UDP_SIZE = 1232
/** Host names and service names; other names would not survive the conversion to text and back. */
const NAME = /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/

/** Whole zones or all records: machines need none of these, and the answers are much larger than the question. */
const refusedTypes: string[] = ['ANY', 'AXFR', 'IXFR', 'MAILA', 'MAILB']

export function parseQuery(bytes: Buffer): Parsed {
  if (bytes.length < 12 || bytes.length > MAX_QUERY_BYTES) return { kind: 'garbage' }
  const flags = bytes.readUInt16BE(2)
  if (flags & 0x8000) return { kind: 'garbage' }
  const id = bytes.readUInt16BE(0)
  const refusal = (rcode: Rcode, question?: Question): Parsed => ({
    kind: 'refusal',
    bytes: encodeAnswer({ id, question, recursionDesired: (flags & FLAGS.recursionDesired) !== 0 }, rcode),
  })
  if (((flags >> 11) & 0xf) !== 0) return refusal('notImplemented')
  try {
    const packet = decode(bytes)
    const question = packet.questions?.[0]
    if (!question || packet.questions?.length !== 1) return refusal('formatError')
    const name = question.name.toLowerCase()
    if (question.class !== 'IN' || refusedTypes.includes(question.type)) return refusal('refused', question)
    if (name.length > 253 || !NAME.test(name)) return refusal('refused', question)
    const edns = packet.additionals?.find((record) => record.type === 'OPT')
    return {
      kind: 'query',
      query: {
        id,
        question,
        name,
        recursionDesired: (flags & FLAGS.recursionDesired) !== 0,
        udpSize: edns ? Math.min(Math.max(edns.udpPayloadSize, 512), MAX_UDP_SIZE) : null,
        dnssecOk: edns?.flag_do ?? false,
      },
    }
  } catch {
    return { kind: 'garbage' }
  }
}

/** An answer of this resolver; `authoritative` for names of machines. */
export function encodeAnswer(
  asked: { id: number; question?: Question | undefined; recursionDesired: boolean },
  rcode: Rcode,
  options: { authoritative?: boolean; answers?: Answer[] } = {},
): Buffer {
  const answer = {
    type: 'response' as const,
    id: asked.id,
    flags:
      FLAGS.recursionAvailable |
      (asked.recursionDesired ? FLAGS.recursionDesired : 0) |
      (options.authoritative ? FLAGS.authoritative : 0) |
      rcodes[rcode],
    answers: options.answers ?? [],
  }
  try {
    return encode({ ...answer, questions: asked.question ? [asked.question] : [] })
  } catch {
    // A question that cannot be encoded again is left out: the id identifies it.
    return encode({ ...answer, questions: [], answers: [] })
  }
}

/** The extended error `Blocked` (RFC 8914): the name exists or not, and this machine may not know. */
const BLOCKED = { optionCode: 15, infoCode: 15, text: 'not listed in the egress rules of this unit' }

/** An answer that the name does not exist, which tells a client that knows extended errors why. */
export function encodeBlocked(query: Query): Buffer {
  const plain = encodeAnswer(query, 'noSuchName')
  if (query.udpSize === null) return plain
  const infoCode = Buffer.alloc(2)
  infoCode.writeUInt16BE(BLOCKED.infoCode)
  // The types know no such code; what is encoded is its number and the data.
  const option = {
    code: BLOCKED.optionCode,
    data: Buffer.concat([infoCode, Buffer.from(BLOCKED.text)]),
  } as unknown as PacketOpt
  const extension = {
    type: 'OPT' as const,
    name: '.' as const,
    udpPayloadSize: MAX_UDP_SIZE,
    extendedRcode: 0,
    ednsVersion: 0,
    flags: 0,
    flag_do: false,
    options: [option],
  }
  return encode({ ...decode(plain), additionals: [extension] })
}

/** Returns the IPv4 addresses in an answer. */
export function addressesIn(answer: Buffer): string[] {
  return (decode(answer).answers ?? []).flatMap((record) => (record.type === 'A' ? [record.data] : []))
}
