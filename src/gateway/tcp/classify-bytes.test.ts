// What pieces of a connection are to its unit, in protocols that tell pings from work.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Listen, listenToUnit, listenToVisitor, type Said } from './classify-bytes.ts'

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

const begun = (protocol: 'amqp' | 'grpc', skip: number): Listen => {
  const listen = listenToVisitor(protocol)
  listen(Buffer.alloc(skip))
  return listen
}

describe('a client of AMQP', () => {
  it.each<[string, Buffer, Said]>([
    ['sends a heartbeat', HEARTBEAT, 'nothing'],
    ['publishes', PUBLISH, 'word'],
    ['acknowledges', ACK, 'word'],
    ['declares a queue', DECLARE, 'question'],
    ['publishes, declares and sends a heartbeat', Buffer.concat([PUBLISH, DECLARE, HEARTBEAT]), 'question'],
  ])('that %s', (_what, bytes, said) => {
    expect(begun('amqp', 8)(bytes)).toBe(said)
  })

  it('is understood however its frames are cut', () => {
    const frames = fc.array(fc.constantFrom(HEARTBEAT, PUBLISH, ACK), { minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(frames, fc.integer({ min: 1, max: 90 }), (sent, size) => {
        const listen = begun('amqp', 8)
        const bytes = Buffer.concat(sent)
        const heard: Said[] = []
        for (let at = 0; at < bytes.length; at += size) heard.push(listen(bytes.subarray(at, at + size)))
        expect(heard).not.toContain('question')
        expect(heard.includes('word')).toBe(sent.some((frame) => frame !== HEARTBEAT))
        expect(listen(DECLARE)).toBe('question')
      }),
    )
  })
})

describe('a server of AMQP', () => {
  it('answers by what is no heartbeat', () => {
    const listen = listenToUnit('amqp')
    expect([listen(HEARTBEAT), listen(method(50, 11)), listen(HEARTBEAT)]).toEqual([
      'nothing',
      'word',
      'nothing',
    ])
  })
})

describe('a client of gRPC', () => {
  it.each<[string, number, Said]>([
    ['pings', 6, 'nothing'],
    ['settles how it talks', 4, 'nothing'],
    ['calls', 1, 'question'],
    ['sends a message', 0, 'question'],
    ['reads on', 8, 'word'],
    ['gives up a call', 3, 'word'],
  ])('that %s', (_what, kind, said) => {
    expect(begun('grpc', 24)(http2Frame(kind, 13))).toBe(said)
  })

  it('hears no answer in the answer to its ping', () => {
    const listen = listenToUnit('grpc')
    expect([listen(PING), listen(http2Frame(1, 20))]).toEqual(['nothing', 'word'])
  })
})

describe('a client of MySQL', () => {
  it('waits for no answer when it closes statements', () => {
    const close = Buffer.from([5, 0, 0, 0, 0x19, 1, 0, 0, 0])
    const listen = listenToVisitor('mysql')
    expect(listen(Buffer.concat([close, close]))).toBe('word')
    expect(listen(Buffer.concat([close, Buffer.from([1, 0, 0, 0, 0x0e])]))).toBe('question')
  })
})
