// Reading packets that arrive in chunks, several at once, too long or truncated.

import fc from 'fast-check'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listen } from '../../../../test/support/gateway.ts'
import { followPackets, type Packet, readPacket, readPackets, writePacket } from './packets.ts'

let server: Server
let port: number
let accept: (socket: Socket) => void = () => {}

beforeAll(async () => {
  server = createServer((socket) => accept(socket))
  port = await listen(server)
})
afterAll(() => server.close())

/** Returns both ends of a TCP connection. */
async function pair(): Promise<{ reader: Socket; writer: Socket }> {
  const accepted = new Promise<Socket>((resolve) => {
    accept = resolve
  })
  const writer = connect(port, '127.0.0.1')
  writer.setNoDelay(true)
  await once(writer, 'connect')
  return { reader: await accepted, writer }
}

const packets = fc.array(
  fc.record({
    number: fc.nat(255),
    payload: fc.uint8Array({ maxLength: 600 }).map((bytes) => Buffer.from(bytes)),
  }),
  { minLength: 1, maxLength: 8 },
)

/** Splits bytes into chunks of these sizes, repeated as needed. */
function cut(bytes: Buffer, sizes: number[]): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0, count = 0; at < bytes.length; count += 1) {
    const size = sizes[count % sizes.length] ?? 1
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return pieces
}

const sizes = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 5 })

describe('MySQL packets', () => {
  it('are read as written for any split, without reading beyond the last one', async () => {
    await fc.assert(
      fc.asyncProperty(packets, sizes, async (sent, into) => {
        const { reader, writer } = await pair()
        const bytes = Buffer.concat([...sent.map(writePacket), Buffer.from('rest')])
        for (const piece of cut(bytes, into)) writer.write(piece)
        writer.end()
        const seen: (Packet | null)[] = []
        for (const _one of sent) seen.push(await readPacket(reader, 600))
        expect(seen).toEqual(sent)
        const rest: Buffer[] = []
        for await (const chunk of reader) rest.push(chunk as Buffer)
        expect(Buffer.concat(rest).toString()).toBe('rest')
      }),
      { numRuns: 50 },
    )
  })

  it('are read if they arrive byte by byte', async () => {
    const { reader, writer } = await pair()
    const found = readPacket(reader, 100)
    for (const byte of writePacket({ number: 7, payload: Buffer.from('slowly') })) {
      writer.write(Buffer.from([byte]))
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await found).toEqual({ number: 7, payload: Buffer.from('slowly') })
    writer.destroy()
  })

  it.each([
    ['too long', '\x65\0\0\x01', false],
    ['truncated in its header', '\x01\0', true],
    ['truncated in its payload', '\x05\0\0\x01half', true],
  ])('end the reading with null if one is %s', async (_what, bytes, ends) => {
    const { reader, writer } = await pair()
    writer.write(Buffer.from(bytes, 'latin1'))
    if (ends) writer.end()
    expect(await readPacket(reader, 100)).toBeNull()
    reader.destroy()
    writer.destroy()
  })

  it('are left in the stream after the reader is aborted', async () => {
    const { reader, writer } = await pair()
    const over = new AbortController()
    const seen: (Packet | null)[] = []
    readPackets(reader, { mostBytes: 100, signal: over.signal }, (packet) => {
      seen.push(packet)
      over.abort()
      return 'more'
    })
    const one = { number: 0, payload: Buffer.from('one') }
    const two = { number: 1, payload: Buffer.from('two') }
    writer.write(Buffer.concat([writePacket(one), writePacket(two)]))
    await expect.poll(() => seen).toEqual([one])
    expect(await readPacket(reader, 100)).toEqual(two)
    expect(seen).toHaveLength(1)
    writer.destroy()
  })

  it('are tracked for any split, and their boundaries are detected exactly', () => {
    fc.assert(
      fc.property(packets, sizes, (sent, into) => {
        const written = sent.map(writePacket)
        const ends = new Set<number>()
        let end = 0
        for (const packet of written) ends.add((end += packet.length))
        const follower = followPackets()
        let at = 0
        for (const piece of cut(Buffer.concat(written), into)) {
          follower.take(piece)
          at += piece.length
          expect(follower.isBetween()).toBe(ends.has(at))
        }
      }),
    )
  })
})
