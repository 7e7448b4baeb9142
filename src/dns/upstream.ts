// Resolves names of the internet through the host's own resolvers, with a random id and a new port for each query,
// limited in time and number. Each query is encoded again, so that only plain questions leave this host.

import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { getServers } from 'node:dns'
import { connect, isIPv6 } from 'node:net'
import { decode, encode } from 'dns-packet'
import { isPublicAddress } from '../lib/address-ranges.ts'
import { encodeAnswer, type Query } from './query.ts'

export type Upstream = { host: string; port: number }
export type Transport = 'udp' | 'tcp'

const TRY_MS = 2000
const MAX_UPSTREAMS = 3

/** The resolvers in the host's resolv.conf. */
export function systemUpstreams(): Upstream[] {
  return getServers().map((server) => {
    const match = /^\[(.+)\]:(\d+)$/.exec(server) ?? /^([^:]+):(\d+)$/.exec(server)
    return { host: match?.[1] ?? server, port: Number(match?.[2] ?? 53) }
  })
}

/** Returns the bytes of the answer: of the first upstream that gives one, else a server failure. */
export async function forward(upstreams: Upstream[], query: Query, transport: Transport): Promise<Buffer> {
  for (const upstream of upstreams.slice(0, MAX_UPSTREAMS)) {
    try {
      const id = randomInt(0x10000)
      const ask = transport === 'udp' ? askByUdp : askByTcp
      const answer = await ask(upstream, encodeQuestion(query, id), (bytes) => answers(bytes, query, id))
      return vet(answer, query)
    } catch {
      // No answer, unreachable or invalid: try the next one.
    }
  }
  return encodeAnswer(query, 'serverFailure')
}

function encodeQuestion(query: Query, id: number): Buffer {
  return encode({
    type: 'query',
    id,
    flags: 0x100,
    questions: [query.question],
    additionals:
      query.udpSize === null
        ? []
        : [
            {
              type: 'OPT',
              name: '.',
              udpPayloadSize: query.udpSize,
              extendedRcode: 0,
              ednsVersion: 0,
              flags: query.dnssecOk ? 0x8000 : 0,
              flag_do: query.dnssecOk,
              options: [],
            },
          ],
  })
}

/** Whether these bytes answer this question; an answer to another question may be forged. */
function answers(bytes: Buffer, query: Query, id: number): boolean {
  if (bytes.length < 12 || bytes.readUInt16BE(0) !== id || !(bytes.readUInt16BE(2) & 0x8000)) return false
  try {
    const question = decode(bytes).questions?.[0]
    return question?.name.toLowerCase() === query.name && question.type === query.question.type
  } catch {
    return false
  }
}

/** Refuses a public name that resolves to a private address, since it could bypass rules that go by name. */
function vet(answer: Buffer, query: Query): Buffer {
  const records = decode(answer).answers ?? []
  const isRebind = records.some(
    (record) => (record.type === 'A' || record.type === 'AAAA') && !isPublicAddress(record.data),
  )
  if (isRebind) return encodeAnswer(query, 'refused')
  const own = Buffer.from(answer)
  own.writeUInt16BE(query.id, 0)
  return own
}

type Matches = (bytes: Buffer) => boolean

function askByUdp(upstream: Upstream, question: Buffer, matches: Matches): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(upstream.host) ? 'udp6' : 'udp4')
    const end = (settle: () => void) => {
      clearTimeout(timer)
      socket.removeAllListeners('error').on('error', () => {})
      socket.close()
      settle()
    }
    const fail = (error: Error) => end(() => reject(error))
    const timer = setTimeout(() => fail(new Error('no answer in time')), TRY_MS)
    socket.once('error', fail)
    socket.on('message', (bytes) => {
      if (matches(bytes)) end(() => resolve(bytes))
    })
    // The socket is connected, so the kernel drops packets of other senders.
    socket.connect(upstream.port, upstream.host, () => socket.send(question))
  })
}

function askByTcp(upstream: Upstream, question: Buffer, matches: Matches): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: upstream.host, port: upstream.port })
    const end = (settle: () => void) => {
      clearTimeout(timer)
      socket.removeAllListeners('error').on('error', () => {})
      socket.destroy()
      settle()
    }
    const fail = (error: Error) => end(() => reject(error))
    const timer = setTimeout(() => fail(new Error('no answer in time')), TRY_MS)
    let received = Buffer.alloc(0)
    socket.once('error', fail)
    socket.once('close', () => fail(new Error('closed without an answer')))
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      const length = received.length >= 2 ? received.readUInt16BE(0) : Infinity
      if (received.length < length + 2) return
      const bytes = received.subarray(2, length + 2)
      if (matches(bytes)) end(() => resolve(bytes))
      else fail(new Error('answered something else'))
    })
    socket.write(framed(question))
  })
}

/** A message with its length before it, as TCP carries it. */
export function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(message.length)
  return Buffer.concat([length, message])
}
