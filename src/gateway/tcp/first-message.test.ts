// The first message of each protocol's client (reliability S33).

import { describe, expect, it } from 'vitest'
import { MAX_FIRST_BYTES, readFirstMessage, type ClientFirstProtocol } from './first-message.ts'

const mongo = (length: number, operation: number) => {
  const bytes = Buffer.alloc(16)
  bytes.writeInt32LE(length, 0)
  bytes.writeInt32LE(operation, 12)
  return bytes
}
const startup = (version: number, parameters = 'user\0app\0\0') => {
  const bytes = Buffer.alloc(8 + parameters.length)
  bytes.writeInt32BE(bytes.length, 0)
  bytes.writeInt32BE(version, 4)
  bytes.write(parameters, 8)
  return bytes
}
const upgrade = 'GET / HTTP/1.1\r\nHost: db\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'

const wellFormed: [ClientFirstProtocol, string, Buffer][] = [
  ['postgres', 'the start of a session', startup(196_608)],
  ['postgres', 'the start of a session in a newer minor version', startup(196_610)],
  ['redis', 'a command', Buffer.from('*1\r\n$4\r\nPING\r\n')],
  ['redis', 'a command as a person types it', Buffer.from('ping\r\n')],
  ['mongodb', 'a message', mongo(200, 2013)],
  ['mongodb', 'the greeting of old', mongo(200, 2004)],
  ['amqp', '0-9-1', Buffer.from('AMQP\0\0\u0009\u0001')],
  ['amqp', '1.0', Buffer.from('AMQP\u0003\u0001\0\0')],
  ['bolt', 'its greeting', Buffer.concat([Buffer.from('6060b017', 'hex'), Buffer.alloc(16)])],
  ['bolt', 'a WebSocket', Buffer.from(upgrade)],
  ['grpc', 'the preface of HTTP/2', Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')],
]

const malformed: [ClientFirstProtocol, string, Buffer][] = [
  ['postgres', 'another version', startup(131_072)],
  ['postgres', 'an invalid length', Buffer.from('00000003000300006162', 'hex')],
  ['postgres', 'more than its length', Buffer.concat([startup(196_608), Buffer.from('Q')])],
  ['redis', 'a request of HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n')],
  ['redis', 'an empty command', Buffer.from('*0\r\n')],
  ['redis', 'binary data', Buffer.from('000102', 'hex')],
  ['mongodb', 'an invalid length', mongo(8, 2013)],
  ['mongodb', 'an unknown operation', mongo(200, 1)],
  ['amqp', 'HTTP', Buffer.from('GET / HTTP/1.1\r\n')],
  ['bolt', 'an HTTP request', Buffer.from('GET / HTTP/1.1\r\nHost: db\r\n\r\n')],
  ['bolt', 'wrong magic bytes', Buffer.alloc(20, 1)],
  ['grpc', 'HTTP/1.1', Buffer.from('POST /a.B/c HTTP/1.1\r\n\r\n')],
]

describe('the first message', () => {
  it.each(wellFormed)('of %s is recognized: %s, at once or byte by byte', (protocol, _what, bytes) => {
    expect(readFirstMessage(protocol, bytes)).toBe('whole')
    for (let length = 0; length < bytes.length; length += 1) {
      expect(['more', 'whole']).toContain(readFirstMessage(protocol, bytes.subarray(0, length)))
    }
  })

  it.each(malformed)('of %s is refused: %s', (protocol, _what, bytes) => {
    expect(readFirstMessage(protocol, bytes)).toBe('wrong')
  })

  it('of PostgreSQL is complete if it is a cancel request', () => {
    expect(readFirstMessage('postgres', Buffer.from('0000001004d2162e0000000100000002', 'hex'))).toBe('only')
  })

  it('without an end is refused at the size limit', () => {
    const endless = Buffer.alloc(MAX_FIRST_BYTES, 'GET /')
    expect(readFirstMessage('bolt', endless.subarray(0, 1000))).toBe('more')
    expect(readFirstMessage('bolt', endless)).toBe('wrong')
  })
})
