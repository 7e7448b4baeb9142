// The resolver of units, over real sockets and with arbitrary packets (reliability Z5, I8).

import { createSocket } from 'node:dgram'
import { connect, createServer } from 'node:net'
import {
  type Answer,
  decode,
  encode,
  type Packet,
  type RecordType,
  streamDecode,
  streamEncode,
} from 'dns-packet'
import fc from 'fast-check'
import { pino } from 'pino'
import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '../lib/clock.ts'
import { silentLog } from '../lib/log.ts'
import { parseQuery, rcodes } from './query.ts'
import { boundsIn, lineSink } from '../../test/support/logged.ts'
import { createResponder, type Lookup, type Resolver, startResolver } from './resolver.ts'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

const ofTeam: Lookup = async (asker, name) =>
  asker === '127.0.0.1' && name === 'db.shop.internal' ? '10.9.0.7' : null

describe('a name of a unit', () => {
  test('resolves to the address of the unit, in any case', async () => {
    const resolver = await start({ lookup: ofTeam })
    const answer = await ask(resolver, 'DB.shop.INTERNAL')
    expect(rcodeOf(answer)).toBe('ok')
    expect(answer.answers).toMatchObject([{ type: 'A', name: 'DB.shop.INTERNAL', data: '10.9.0.7' }])
  })

  test('has no IPv6 address, but exists', async () => {
    const resolver = await start({ lookup: ofTeam })
    const answer = await ask(resolver, 'db.shop.internal', 'AAAA')
    expect(rcodeOf(answer)).toBe('ok')
    expect(answer.answers).toEqual([])
  })

  test('that is unknown does not exist, and is not sent to the upstream', async () => {
    const upstream = await startUpstream([{ type: 'A', name: 'other.internal', data: '9.9.9.9' }])
    const resolver = await start({ lookup: ofTeam, upstreams: [upstream] })
    for (const name of ['other.shop.internal', 'internal', 'db', 'localhost', '7.0.9.10.in-addr.arpa']) {
      expect(rcodeOf(await ask(resolver, name)), name).toBe('noSuchName')
    }
    expect(upstream.asked()).toBe(0)
  })

  test('is looked up with the address of the client', async () => {
    const askers: string[] = []
    const respond = createResponder({
      upstreams: [],
      log: silentLog,
      clock: systemClock,
      lookup: async (asker) => {
        askers.push(asker)
        return null
      },
    })
    await respond(query('db.shop.internal'), '10.9.0.3', 'udp')
    expect(askers).toEqual(['10.9.0.3'])
  })

  test('is answered with a server failure when the lookup fails', async () => {
    const resolver = await start({ lookup: () => Promise.reject(new Error('no database')) })
    expect(rcodeOf(await ask(resolver, 'db.shop.internal'))).toBe('serverFailure')
  })
})

describe('a public name', () => {
  test('is sent to the upstream with a new id', async () => {
    const upstream = await startUpstream([{ type: 'A', name: 'example.com', data: '203.0.113.5' }])
    const resolver = await start({ upstreams: [upstream] })
    const answers = await Promise.all([1, 2, 3].map(() => ask(resolver, 'example.com')))
    for (const answer of answers) {
      expect(answer.id).toBe(ID)
      expect(answer.answers).toMatchObject([{ data: '203.0.113.5' }])
    }
    expect(new Set(upstream.ids()).size).toBeGreaterThan(1)
  })

  test('is resolved over TCP too, several on one connection', async () => {
    const upstream = await startUpstream([{ type: 'TXT', name: 'example.com', data: 'x'.repeat(200) }])
    const resolver = await start({ upstreams: [upstream], lookup: ofTeam })
    const answers = await askByTcp(resolver, ['example.com', 'db.shop.internal'])
    expect(answers.map(rcodeOf)).toEqual(['ok', 'ok'])
  })

  test.each(['10.0.0.1', '127.0.0.1', '169.254.169.254', '100.100.100.200', '192.168.1.1'])(
    'that resolves to %s is refused',
    async (data) => {
      const upstream = await startUpstream([
        { type: 'A', name: 'rebind.example.com', data: '203.0.113.5' },
        { type: 'A', name: 'rebind.example.com', data },
      ])
      const resolver = await start({ upstreams: [upstream] })
      const answer = await ask(resolver, 'rebind.example.com')
      expect(rcodeOf(answer)).toBe('refused')
      expect(answer.answers).toEqual([])
    },
  )

  test('that resolves to a private IPv4 address within an IPv6 one is refused', async () => {
    const upstream = await startUpstream([
      { type: 'AAAA', name: 'rebind.example.com', data: '::ffff:a9fe:a9fe' },
    ])
    const resolver = await start({ upstreams: [upstream] })
    expect(rcodeOf(await ask(resolver, 'rebind.example.com', 'AAAA'))).toBe('refused')
  })

  test('is resolved by the next upstream when the first is down', async () => {
    const upstream = await startUpstream([{ type: 'A', name: 'example.com', data: '203.0.113.5' }])
    const dead = { host: '127.0.0.1', port: await freePort() }
    const resolver = await start({ upstreams: [dead, upstream] })
    expect(rcodeOf(await ask(resolver, 'example.com'))).toBe('ok')
  })

  test('is not resolved by an answer to another question', async () => {
    const upstream = await startUpstream([], { question: 'evil.example.com' })
    const resolver = await start({ upstreams: [upstream] })
    expect(rcodeOf(await ask(resolver, 'example.com'))).toBe('serverFailure')
  })
})

describe('a hostile query', () => {
  test.each(['ANY', 'AXFR', 'IXFR'] as const)('of the type %s is refused', async (type) => {
    const resolver = await start({ lookup: ofTeam })
    expect(rcodeOf(await ask(resolver, 'shop.internal', type as RecordType))).toBe('refused')
  })

  test('for a name that is no host name is refused', async () => {
    const upstream = await startUpstream([])
    const resolver = await start({ upstreams: [upstream] })
    for (const name of ['a b.example.com', 'ü.example.com', '\u0000.example.com', '*.example.com']) {
      expect(rcodeOf(await ask(resolver, name)), name).toBe('refused')
    }
    expect(upstream.asked()).toBe(0)
  })

  test('is limited for each client, and leaves other clients served', async () => {
    const told: string[] = []
    const log = pino(lineSink(told))
    const lookup = async () => '10.9.0.7'
    const respond = createResponder({ lookup, upstreams: [], log, clock: systemClock })
    const asked = Array.from({ length: 5000 }, () => respond(query('db.shop.internal'), '10.9.0.3', 'udp'))
    const answered = (await Promise.all(asked)).filter((answer) => answer !== null)
    expect(answered.length).toBeLessThan(1000)
    expect(await respond(query('db.shop.internal'), '10.9.0.4', 'udp')).not.toBeNull()
    expect(boundsIn(told)).toEqual([['name look-ups a second', '10.9.0.3']])
  })

  test('never makes the responder throw, and every response can be decoded', async () => {
    const lookup: Lookup = async (_asker, name) => (name.startsWith('a') ? '10.9.0.7' : null)
    let asker = 0
    let answered = 0
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.uint8Array({ maxLength: 600 }), damagedQuery()), async (bytes) => {
        // A new responder each time, so that the limit of a client does not end the run early.
        const respond = createResponder({ lookup, upstreams: [], log: silentLog, clock: systemClock })
        const answer = await respond(Buffer.from(bytes), `10.9.${asker++ & 0xff}.1`, 'udp')
        if (!answer) return
        answered += 1
        expect(decode(answer).type).toBe('response')
      }),
      { numRuns: 5000 },
    )
    expect(answered).toBeGreaterThan(500)
    expect(answered).toBeLessThan(5000)
  })

  test('that is itself a response gets no response, so that two resolvers cannot loop', () => {
    expect(parseQuery(encode({ type: 'response', id: 1, questions: [{ type: 'A', name: 'a.b' }] }))).toEqual({
      kind: 'garbage',
    })
  })

  test('of garbage over TCP closes the connection', async () => {
    const resolver = await start({})
    const ended = new Promise<void>((resolve) => {
      const socket = connect(resolver.port, '127.0.0.1', () => socket.write(Buffer.alloc(5000)))
      socket.on('error', () => {}).once('close', () => resolve())
    })
    await ended
  })
})

// Support

const ID = 4711

function query(name: string, type: RecordType = 'A'): Buffer {
  return encode({ type: 'query', id: ID, flags: 0x100, questions: [{ type, name }] })
}

/** A valid query with some bytes replaced, which gets deeper than noise does. */
function damagedQuery() {
  const sound = fc.constantFrom(
    query('a.internal'),
    query('b.example.com', 'TXT'),
    encode({
      type: 'query',
      id: 1,
      questions: [{ type: 'A', name: 'a.internal' }],
      additionals: [
        {
          type: 'OPT',
          name: '.',
          udpPayloadSize: 4096,
          extendedRcode: 0,
          ednsVersion: 0,
          flags: 0,
          flag_do: false,
          options: [],
        },
      ],
    }),
  )
  return fc
    .tuple(sound, fc.array(fc.tuple(fc.nat(100), fc.nat(255)), { maxLength: 6 }), fc.nat(60))
    .map(([bytes, changes, cut]) => {
      const damaged = Buffer.from(bytes)
      for (const [at, value] of changes) if (at < damaged.length) damaged[at] = value
      return cut < 5 ? damaged.subarray(0, damaged.length - cut) : damaged
    })
}

function rcodeOf(answer: Packet): string | undefined {
  const code = (answer.flags ?? 0) & 0xf
  return Object.entries(rcodes).find(([, value]) => value === code)?.[0]
}

type StartOptions = { lookup?: Lookup; upstreams?: { host: string; port: number }[] }

async function start({ lookup = async () => null, upstreams = [] }: StartOptions): Promise<Resolver> {
  const options = { address: '127.0.0.1', port: 0, lookup, upstreams, log: silentLog, clock: systemClock }
  // A port that is free for UDP may not be for TCP: other tests leave thousands behind them for a minute.
  const tryAgain = () => startResolver(options)
  const resolver = await tryAgain().catch(tryAgain).catch(tryAgain)
  closers.push(() => resolver.close())
  return resolver
}

function ask(resolver: Resolver, name: string, type: RecordType = 'A'): Promise<Packet> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4')
    const timer = setTimeout(() => {
      socket.close()
      reject(new Error('no answer'))
    }, 8000)
    socket.once('message', (bytes) => {
      clearTimeout(timer)
      socket.close()
      resolve(decode(bytes))
    })
    socket.send(query(name, type), resolver.port, '127.0.0.1')
  })
}

function askByTcp(resolver: Resolver, names: string[]): Promise<Packet[]> {
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0)
    const socket = connect(resolver.port, '127.0.0.1')
    socket.on('error', reject)
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      const answers: Packet[] = []
      for (let at = 0; at + 2 <= received.length; at += received.readUInt16BE(at) + 2) {
        const end = at + 2 + received.readUInt16BE(at)
        if (end <= received.length) answers.push(streamDecode(received.subarray(at, end)))
      }
      if (answers.length < names.length) return
      socket.destroy()
      resolve(answers)
    })
    for (const name of names) {
      socket.write(streamEncode({ type: 'query', id: ID, flags: 0x100, questions: [{ type: 'A', name }] }))
    }
  })
}

/** Answers every question with the same records, over UDP and TCP. */
async function startUpstream(answers: Answer[], lie: { question?: string } = {}) {
  const ids: (number | undefined)[] = []
  const reply = (bytes: Buffer): Packet => {
    const asked = decode(bytes)
    ids.push(asked.id)
    const questions = (asked.questions ?? []).map((question) => ({
      ...question,
      name: lie.question ?? question.name,
    }))
    return { type: 'response', id: asked.id, flags: 0x180, questions, answers }
  }
  const tcp = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk) => socket.write(streamEncode(reply(chunk.subarray(2)))))
  })
  const port = await new Promise<number>((resolve) => {
    tcp.listen(0, '127.0.0.1', () => {
      const address = tcp.address()
      resolve(typeof address === 'object' && address ? address.port : 0)
    })
  })
  const udp = createSocket('udp4')
  udp.on('message', (bytes, peer) => udp.send(encode(reply(bytes)), peer.port, peer.address))
  await new Promise<void>((resolve) => udp.bind(port, '127.0.0.1', resolve))
  closers.push(async () => {
    udp.close()
    await new Promise((resolve) => tcp.close(resolve))
  })
  return { host: '127.0.0.1', port, asked: () => ids.length, ids: () => ids }
}

async function freePort(): Promise<number> {
  const socket = createSocket('udp4')
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  const { port } = socket.address()
  await new Promise<void>((resolve) => socket.close(resolve))
  return port
}
