import { connect, type ConnectionOptions } from 'node:tls'
import { Duplex } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { HELLO_MAX_BYTES, readHello } from './client-hello.ts'

const hello = await clientHello({ servername: 'api.example.com' })

describe('the name in a ClientHello', () => {
  test('is read from what a real client sends', () => {
    expect(readHello(hello)).toEqual({ kind: 'hello', name: 'api.example.com' })
  })

  test('is read once the message is whole, however it is cut', () => {
    for (let end = 0; end < hello.length; end++)
      expect(readHello(hello.subarray(0, end))).toEqual({ kind: 'more' })
  })

  test('is read across records', () => {
    const message = hello.subarray(5)
    for (const size of [1, 3, 7, 100]) {
      const records: Buffer[] = []
      for (let at = 0; at < message.length; at += size) records.push(record(message.subarray(at, at + size)))
      expect(readHello(Buffer.concat(records))).toEqual({ kind: 'hello', name: 'api.example.com' })
    }
  })

  test('is read with extensions that mean nothing, such as GREASE, before and after it', () => {
    const grease = extension(0x0a0a, Buffer.alloc(3))
    const ech = extension(0xfe0d, Buffer.alloc(40, 1))
    expect(readHello(helloWith(grease, serverName('a.example.com'), ech))).toEqual({
      kind: 'hello',
      name: 'a.example.com',
    })
  })

  test.each([
    ['no name', helloWith(), 'no_name'],
    ['two names', helloWith(serverName('a.example.com'), serverName('b.example.com')), 'no_name'],
    ['a name of another kind', helloWith(serverName('a.example.com', 1)), 'no_name'],
    ['a name with a control character', helloWith(serverName('a\n.example.com')), 'no_name'],
    ['an empty name', helloWith(serverName('')), 'no_name'],
    ['an extension that ends beyond the message', helloWith(Buffer.from([0, 0, 0, 9])), 'no_name'],
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n'), 'no_tls'],
    ['SSH', Buffer.from('SSH-2.0-client\r\n'), 'no_tls'],
    ['an empty record', record(Buffer.alloc(0)), 'no_tls'],
    ['another handshake message', record(Buffer.from([2, 0, 0, 1, 0])), 'no_tls'],
    ['a message of 16 MB', record(Buffer.from([1, 255, 255, 255, 0])), 'too_large'],
  ])('is none in %s', (_what, bytes, reason) => {
    expect(readHello(bytes)).toEqual({ kind: 'refused', reason })
  })

  test('is never waited for beyond the limit', () => {
    const endless = record(Buffer.concat([Buffer.from([1, 0, 0x3f, 0]), Buffer.alloc(HELLO_MAX_BYTES)]))
    expect(readHello(endless.subarray(0, HELLO_MAX_BYTES)).kind).not.toBe('more')
  })
})

test('no bytes make the reader throw, and a damaged name is never one with strange characters', () => {
  const damaged = fc
    .tuple(fc.array(fc.tuple(fc.nat(hello.length - 1), fc.nat(255)), { maxLength: 8 }), fc.nat(hello.length))
    .map(([changes, end]) => {
      const bytes = Buffer.from(hello)
      for (const [at, value] of changes) bytes[at] = value
      return end % 3 === 0 ? bytes.subarray(0, end) : bytes
    })
  let read = 0
  fc.assert(
    fc.property(fc.oneof(damaged, fc.uint8Array({ maxLength: 600 })), (bytes) => {
      const result = readHello(Buffer.from(bytes))
      if (result.kind !== 'hello') return
      read += 1
      expect(result.name).toMatch(/^[!-~]+$/)
    }),
    { numRuns: 5000 },
  )
  expect(read).toBeGreaterThan(100)
})

// Support

/** What Node's own client sends first. */
async function clientHello(options: ConnectionOptions): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  const wire = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      resolve(chunk)
      done()
    },
  })
  const socket = connect({ ...options, socket: wire })
  socket.on('error', () => {})
  const bytes = await promise
  socket.destroy()
  return bytes
}

function record(content: Buffer): Buffer {
  const head = Buffer.from([22, 3, 1, 0, 0])
  head.writeUInt16BE(content.length, 3)
  return Buffer.concat([head, content])
}

function sized(content: Buffer, bytes: 1 | 2 | 3): Buffer {
  const head = Buffer.alloc(bytes)
  head.writeUIntBE(content.length, 0, bytes)
  return Buffer.concat([head, content])
}

function extension(type: number, content: Buffer): Buffer {
  const head = Buffer.alloc(2)
  head.writeUInt16BE(type)
  return Buffer.concat([head, sized(content, 2)])
}

function serverName(name: string, kind = 0): Buffer {
  const entry = Buffer.concat([Buffer.from([kind]), sized(Buffer.from(name, 'latin1'), 2)])
  return extension(0, sized(entry, 2))
}

function helloWith(...extensions: Buffer[]): Buffer {
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    sized(Buffer.alloc(0), 1),
    sized(Buffer.from([0x13, 0x01]), 2),
    sized(Buffer.from([0]), 1),
    sized(Buffer.concat(extensions), 2),
  ])
  return record(Buffer.concat([Buffer.from([1]), sized(body, 3)]))
}
