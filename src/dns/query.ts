// Queries of machines, from bytes to what is asked, and answers back to bytes. Pure, and it never throws:
// these are bytes of strangers.

import { type Answer, decode, encode, type Question } from 'dns-packet'

export type Query = {
  id: number
  question: Question
  /** In lower case and without the dot at the end. */
  name: string
  recursionDesired: boolean
  /** What the asker takes in one UDP packet; null: it does not speak EDNS. */
  udpSize: number | null
  dnssecOk: boolean
}

/** The answer codes used here, as RFC 1035 numbers them. */
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
  /** Understood well enough to say no. */
  | { kind: 'refusal'; bytes: Buffer }
  /** No answer at all: it is no query, or could be someone else's answer bounced off us. */
  | { kind: 'garbage' }

const FLAGS = { authoritative: 0x400, recursionDesired: 0x100, recursionAvailable: 0x80 }
const MAX_QUERY_BYTES = 1232
const MAX_UDP_SIZE = 1232
/** Host names and service names; anything else would not survive from bytes to text and back. */
const NAME = /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/

/** Whole zones, or all there is: nothing a machine needs, and large answers to small questions. */
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

/** An answer of our own; `authoritative` for names of machines. */
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
    // A question that cannot be written back is left out: the id says which one was meant.
    return encode({ ...answer, questions: [], answers: [] })
  }
}
