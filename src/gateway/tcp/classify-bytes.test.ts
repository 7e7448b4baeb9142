// Whether bytes on a connection count as use of the unit, in protocols with keep-alive messages of their own.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createTestClock } from '../../../test/support/clock.ts'
import { SECOND } from '../../lib/clock.ts'
import type { BytesClass, Classifier, Listening } from '../sessions/bytes-class.ts'
import { listenTo } from './classify-bytes.ts'
import { listenToWebSocket } from './pings/web-socket.ts'

const amqpFrame = (kind: number, payload: Buffer) => {
  const head = Buffer.alloc(7)
  head.writeUInt8(kind, 0)
  head.writeUInt32BE(payload.length, 3)
  return Buffer.concat([head, payload, Buffer.from([0xce])])
}
const method = (family: number, number: number, rest = 40) =>
  amqpFrame(1, Buffer.concat([Buffer.from([0, family, 0, number]), Buffer.alloc(rest, 8)]))
const HEARTBEAT = amqpFrame(8, Buffer.alloc(0))
const PUBLISH = Buffer.concat([
  method(60, 40),
  amqpFrame(2, Buffer.alloc(30)),
  amqpFrame(3, Buffer.alloc(900)),
])
const DECLARE = method(50, 10)
const ACK = method(60, 80, 9)

const http2Frame = (kind: number, length: number) => {
  const frame = Buffer.alloc(9 + length, 6)
  frame.writeUIntBE(length, 0, 3)
  frame.writeUInt8(kind, 3)
  return frame
}
const PING = http2Frame(6, 8)

const greetings = {
  amqp: Buffer.from('AMQP\0\0\x09\x01', 'latin1'),
  grpc: Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
}
const clock = createTestClock()

function listening(protocol: 'amqp' | 'grpc'): Listening {
  const both = listenTo(protocol, clock)
  expect(both.toVisitor(greetings[protocol])).toBe('word')
  return both
}
const begun = (protocol: 'amqp' | 'grpc'): Classifier => listening(protocol).toVisitor

/** Classifies bytes that arrive in chunks of this size. */
function heardIn(listen: Classifier, bytes: Buffer, size: number): BytesClass[] {
  const heard: BytesClass[] = []
  for (let at = 0; at < bytes.length; at += size) heard.push(listen(bytes.subarray(at, at + size)))
  return heard
}

describe('an AMQP client', () => {
  it.each<[string, Buffer, BytesClass]>([
    ['sends a heartbeat', HEARTBEAT, 'nothing'],
    ['publishes', PUBLISH, 'word'],
    ['acknowledges', ACK, 'word'],
    ['declares a queue', DECLARE, 'question'],
    ['publishes, declares and sends a heartbeat', Buffer.concat([PUBLISH, DECLARE, HEARTBEAT]), 'question'],
  ])('that %s is classified correctly', (_what, bytes, said) => {
    expect(begun('amqp')(bytes)).toBe(said)
  })

  it('is classified correctly for any split of its frames', () => {
    const frames = fc.array(fc.constantFrom(HEARTBEAT, PUBLISH, ACK), { minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(frames, fc.integer({ min: 1, max: 90 }), (sent, size) => {
        const listen = begun('amqp')
        const heard = heardIn(listen, Buffer.concat(sent), size)
        expect(heard).not.toContain('question')
        expect(heard.includes('word')).toBe(sent.some((frame) => frame !== HEARTBEAT))
        expect(listen(DECLARE)).toBe('question')
      }),
    )
  })
})

describe('an AMQP server', () => {
  it('is in use by any frame other than a heartbeat', () => {
    const listen = listenTo('amqp', clock).toUnit
    expect([listen(HEARTBEAT), listen(method(50, 11)), listen(HEARTBEAT)]).toEqual([
      'nothing',
      'word',
      'nothing',
    ])
  })
})

describe('an AMQP 1.0 client', () => {
  it('is distinguished from 0.9.1, and its empty frames are heartbeats', () => {
    const greeting = Buffer.from('AMQP\x03\x01\x00\x00', 'latin1')
    const empty = Buffer.from([0, 0, 0, 8, 2, 0, 0, 0])
    // As 0.9.1, its first byte would start a heartbeat.
    const transfer = Buffer.concat([Buffer.from([0, 0, 1, 8, 2, 0, 0, 0]), Buffer.alloc(256, 8)])
    const { toVisitor, toUnit } = listenTo('amqp', clock)
    for (const listen of [toVisitor, toUnit]) {
      expect([greeting, empty, transfer, greeting, empty].map(listen)).toEqual([
        'word',
        'nothing',
        'word',
        'word',
        'nothing',
      ])
    }
  })
})

/** Builds a WebSocket frame; those of clients are masked. */
function webSocketFrame(kind: number, length: number, masked: boolean): Buffer {
  const lengths = [Buffer.from([length]), Buffer.alloc(3, 126), Buffer.alloc(9, 127)]
  if (length > 125) lengths[1]?.writeUInt16BE(Math.min(length, 65_535), 1)
  lengths[2]?.writeBigUInt64BE(BigInt(length), 1)
  const [coded = Buffer.alloc(1)] = lengths.slice(length <= 125 ? 0 : length < 65_536 ? 1 : 2)
  coded[0] = (coded[0] ?? 0) | (masked ? 0x80 : 0)
  const mask = masked ? Buffer.from([1, 2, 3, 4]) : Buffer.alloc(0)
  // The payload would look like pings if it were parsed as frame headers.
  return Buffer.concat([Buffer.from([0x80 | kind]), coded, mask, Buffer.alloc(length, 0x89)])
}

describe('a WebSocket', () => {
  const sides = ['toVisitor', 'toUnit'] as const
  const control = [9, 10].flatMap((kind) => [0, 5, 125].map((length) => ({ kind, length })))
  const content = [0, 1, 2].flatMap((kind) => [0, 1, 125, 126, 70_000].map((length) => ({ kind, length })))

  it.each(sides)('with only pings and pongs %s is not in use, for any split of its frames', (side) => {
    const frames = fc.array(fc.constantFrom(...control), { minLength: 1, maxLength: 30 })
    fc.assert(
      fc.property(
        frames,
        fc.integer({ min: 1, max: 200 }),
        fc.constantFrom(...content),
        (sent, size, last) => {
          const listen = listenToWebSocket()[side]
          const framed = ({ kind, length }: (typeof control)[number]) =>
            webSocketFrame(kind, length, side === 'toVisitor')
          const heard = heardIn(listen, Buffer.concat(sent.map(framed)), size)
          expect(new Set(heard)).toEqual(new Set(['nothing']))
          expect(heardIn(listen, framed(last), size)).toContain('word')
          expect(new Set(heardIn(listen, Buffer.concat(sent.map(framed)), size))).toEqual(
            new Set(['nothing']),
          )
        },
      ),
    )
  })

  it.each<[string, Buffer]>([
    ['is not masked', webSocketFrame(9, 4, false)],
    ['is no whole ping', Buffer.concat([Buffer.from([0x09, 0x80]), Buffer.alloc(4)])],
    ['is a ping of more than 125 bytes', webSocketFrame(9, 200, true)],
    ['is no frame', Buffer.from('hello')],
  ])('that sends data that %s is in use from then on', (_what, bytes) => {
    const listen = listenToWebSocket().toVisitor
    expect(listen(bytes)).toBe('word')
    expect(listen(webSocketFrame(9, 0, true))).toBe('word')
  })
})

describe('with a frozen unit', () => {
  it('a WebSocket ping is answered once, and never inside a message of the unit', () => {
    const both = listenToWebSocket()
    expect(both.keepAlive()).toBeNull()
    const ping = Buffer.from([0x89, 0x82, 1, 2, 3, 4, 0x68 ^ 1, 0x69 ^ 2])
    both.toVisitor(webSocketFrame(9, 3, true))
    both.toVisitor(ping)
    const message = webSocketFrame(1, 20, false)
    both.toUnit(message.subarray(0, 1))
    expect(both.keepAlive()).toBeNull()
    both.toUnit(message.subarray(1))
    expect(both.keepAlive()?.toString('latin1')).toBe('\x8a\x02hi')
    expect(both.keepAlive()).toBeNull()
    both.toVisitor(ping)
    both.toUnit(webSocketFrame(10, 2, false))
    expect(both.keepAlive()).toBeNull()
  })

  it('a gRPC ping is answered, and never between header frames', () => {
    const both = listening('grpc')
    both.toVisitor(PING)
    expect(both.keepAlive()).toBeNull()
    both.toUnit(http2Frame(4, 0))
    const answer = Buffer.from(PING)
    answer[4] = 1
    expect(both.keepAlive()).toEqual(
      Buffer.concat([Buffer.from([0, 0, 8, 6, 1, 0, 0, 0, 0]), PING.subarray(9)]),
    )
    expect(both.keepAlive()).toBeNull()
    both.toVisitor(PING)
    const [open, closed] = [http2Frame(1, 5), http2Frame(9, 5)]
    open[4] = 0
    closed[4] = 4
    both.toUnit(open)
    expect(both.keepAlive()).toBeNull()
    both.toUnit(closed)
    expect(both.keepAlive()).not.toBeNull()
    both.toVisitor(PING)
    both.toUnit(answer)
    expect(both.keepAlive()).toBeNull()
  })

  it('an AMQP client gets heartbeats at the negotiated interval', () => {
    const both = listening('amqp')
    both.toUnit(method(10, 30))
    clock.advance(100 * SECOND)
    expect(both.keepAlive()).toBeNull()
    const tuned = amqpFrame(1, Buffer.from([0, 10, 0, 31, 8, 0, 0, 2, 0, 0, 0, 10]))
    for (const byte of tuned) both.toVisitor(Buffer.from([byte]))
    expect(both.keepAlive()).toEqual(HEARTBEAT)
    expect(both.keepAlive()).toBeNull()
    clock.advance(5 * SECOND)
    both.toUnit(HEARTBEAT.subarray(0, 3))
    clock.advance(5 * SECOND)
    expect(both.keepAlive()).toBeNull()
    both.toUnit(HEARTBEAT.subarray(3))
    clock.advance(4 * SECOND)
    expect(both.keepAlive()).toBeNull()
    clock.advance(SECOND)
    expect(both.keepAlive()).toEqual(HEARTBEAT)
  })
})

describe('a gRPC client', () => {
  it.each<[string, number, BytesClass]>([
    ['pings', 6, 'nothing'],
    ['sends settings', 4, 'nothing'],
    ['calls', 1, 'question'],
    ['sends a message', 0, 'question'],
    ['updates its window', 8, 'word'],
    ['resets a stream', 3, 'word'],
  ])('that %s is classified correctly', (_what, kind, said) => {
    expect(begun('grpc')(http2Frame(kind, kind === 6 ? 8 : 13))).toBe(said)
  })

  it('is not in use by the answer to its ping', () => {
    const listen = listenTo('grpc', clock).toUnit
    expect([listen(PING), listen(http2Frame(1, 20))]).toEqual(['nothing', 'word'])
  })
})

describe('a MySQL client', () => {
  it('does not wait for a response when it closes prepared statements', () => {
    const close = Buffer.from([5, 0, 0, 0, 0x19, 1, 0, 0, 0])
    const listen = listenTo('mysql', clock).toVisitor
    expect(listen(Buffer.concat([close, close]))).toBe('word')
    expect(listen(Buffer.concat([close, Buffer.from([1, 0, 0, 0, 0x0e])]))).toBe('question')
  })
})
