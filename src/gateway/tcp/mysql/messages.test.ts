// The messages of the MySQL protocol that the gateway reads and writes itself.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  askForTls,
  asksForPassword,
  errorPacket,
  greetClient,
  type Login,
  readAnswer,
  readGreeting,
  readLogin,
  writeLogin,
} from './messages.ts'

const SALT = Buffer.from('abcdefghijklmnopqrst')
const TLS = 0x800
const ATTRIBUTES = 0x10_0000
const LONG_AUTH = 0x20_0000
const DATABASE = 0x8
/** Protocol 4.1, a 20-byte salt, and authentication plugins. */
const BASE = 0x200 | 0x8000 | 0x8_0000
const EVERYTHING = 0xffff_ffff

const anyBytes = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))
const names = fc.uint8Array({ min: 1, maxLength: 40 }).map((bytes) => Buffer.from(bytes))
const logins: fc.Arbitrary<Login> = fc.record({
  capabilities: fc.nat(0x7f_ffff).map((bits) => bits | BASE | DATABASE | ATTRIBUTES),
  longestPacket: fc.nat(0x7fff_ffff),
  charset: fc.nat(255),
  user: names,
  database: names,
  attributes: fc.nat(66_000).map((length) => Buffer.alloc(length, 'a')),
})

/** Checks that the packet is complete and returns its payload. */
const payloadOf = (packet: Buffer) => {
  expect(packet.readUIntLE(0, 3)).toBe(packet.length - 4)
  return packet.subarray(4)
}
/** Parses the payload as a login sent over TLS. */
const asSent = (payload: Buffer) => readLogin({ number: 2, payload })

describe('the server greeting', () => {
  it('of the gateway can be parsed and offers TLS', () => {
    const packet = greetClient({ salt: SALT, sessionId: 0xffff_ffff })
    expect(packet.readUInt8(3)).toBe(0)
    const greeting = readGreeting({ number: 0, payload: payloadOf(packet) })
    expect(greeting).toMatchObject({ kind: 'greets', hasTls: true })
    const [head, tail] = [SALT.subarray(0, 8), SALT.subarray(8)]
    expect(packet.includes(Buffer.concat([head, Buffer.from([0])]))).toBe(true)
    expect(packet.includes(Buffer.concat([tail, Buffer.from('\0caching_sha2_password\0')]))).toBe(true)
  })

  it('of the gateway offers no optional features that some servers lack', () => {
    const greeting = readGreeting({
      number: 0,
      payload: payloadOf(greetClient({ salt: SALT, sessionId: 1 })),
    })
    const compression = 0x20 | 0x400_0000
    const otherResults = 0x100_0000 | 0x200_0000
    const queryAttributes = 0x800_0000
    const offered = greeting.kind === 'greets' ? greeting.capabilities : EVERYTHING
    expect(offered & (compression | otherResults | queryAttributes)).toBe(0)
  })

  it('of a unit is rejected if it is truncated, too old or another protocol', () => {
    const whole = payloadOf(greetClient({ salt: SALT, sessionId: 1 }))
    for (let length = 0; length < whole.indexOf(0) + 20; length += 1)
      expect(readGreeting({ number: 0, payload: whole.subarray(0, length) })).toEqual({ kind: 'wrong' })
    expect(readGreeting({ number: 1, payload: whole })).toEqual({ kind: 'wrong' })
    const old = Buffer.from(whole)
    old.writeUInt16LE(0, whole.indexOf(0) + 19)
    expect(readGreeting({ number: 0, payload: old })).toEqual({ kind: 'wrong' })
  })

  it('can be an error with or without an SQL state', () => {
    const error = { code: 1040, state: '08004', message: 'Too many connections' }
    const expected = { kind: 'refuses', code: 1040, message: 'Too many connections' }
    const payload = payloadOf(errorPacket(0, error))
    expect(readGreeting({ number: 0, payload })).toEqual(expected)
    const short = Buffer.concat([payload.subarray(0, 3), payload.subarray(9)])
    expect(readGreeting({ number: 0, payload: short })).toEqual(expected)
  })
})

describe('the client’s first packet', () => {
  const answer = (capabilities: number, length = 32) => {
    const payload = Buffer.alloc(length)
    payload.writeUInt32LE(capabilities)
    return payload
  }

  it('is a TLS request if it has exactly 32 bytes and the TLS flag, and otherwise a plain login', () => {
    expect(readAnswer({ number: 1, payload: answer(BASE | TLS) })).toBe('tls')
    expect(readAnswer({ number: 1, payload: answer(BASE) })).toBe('plain')
    expect(readAnswer({ number: 1, payload: answer(BASE | TLS, 60) })).toBe('plain')
  })

  it('is rejected if it is out of order, too short or of another protocol', () => {
    expect(readAnswer({ number: 2, payload: answer(BASE | TLS) })).toBe('wrong')
    expect(readAnswer({ number: 1, payload: answer(BASE | TLS, 31) })).toBe('wrong')
    expect(readAnswer({ number: 1, payload: answer(TLS) })).toBe('wrong')
  })
})

describe('a login', () => {
  it('is forwarded to the unit without any part of the password', () => {
    fc.assert(
      fc.property(logins, (login) => {
        const { payload, number } = writeLogin(login, { offered: EVERYTHING, isSecure: true })
        expect(number).toBe(2)
        const { user, database, attributes, charset, longestPacket } = login
        const read = asSent(payload)
        // The length of the authentication response.
        expect(payload[32 + user.length + 1]).toBe(0)
        expect(read).toMatchObject({ user, database, charset, longestPacket })
        expect(read?.attributes.equals(attributes)).toBe(true)
        expect(payload.includes('auth_unknown_plugin\0')).toBe(true)
      }),
    )
  })

  it('uses only capabilities that the server offers, and TLS if the connection has TLS', () => {
    fc.assert(
      fc.property(logins, fc.nat(0x7fff_ffff), fc.boolean(), (login, more, isSecure) => {
        const offered = (more | BASE) >>> 0
        const { payload, number } = writeLogin(login, { offered, isSecure })
        const agreed = payload.readUInt32LE(0)
        // MariaDB omits this flag from its greeting to identify itself as MariaDB.
        const allowed = offered | 1 | TLS
        expect(agreed & ~allowed).toBe(0)
        expect((agreed & TLS) !== 0).toBe(isSecure)
        expect(number).toBe(isSecure ? 2 : 1)
        expect(payload.subarray(9, 32).every((byte) => byte === 0)).toBe(true)
        if (isSecure) expect(askForTls(login, offered).subarray(4)).toEqual(payload.subarray(0, 32))
      }),
    )
  })

  it('may omit the TLS flag and the terminator of the plugin name', () => {
    const head = Buffer.alloc(32)
    head.writeUInt32LE(BASE)
    const login = readLogin({ number: 2, payload: Buffer.concat([head, Buffer.from('me\0\x02xyplugin')]) })
    expect(login).toMatchObject({ user: Buffer.from('me'), database: Buffer.alloc(0) })
  })

  it.each([
    ['an unterminated user name', BASE, 'me'],
    ['an authentication response that exceeds the packet', BASE, 'me\0\x30xy'],
    ['an authentication response of huge length', BASE | LONG_AUTH, 'me\0\xfexxxxxxxxxx\0'],
    ['a truncated length', BASE | LONG_AUTH, 'me\0\xfd\x01'],
    ['an unterminated database name', BASE | DATABASE, 'me\0\0shop'],
    ['attributes that exceed the packet', BASE | ATTRIBUTES, 'me\0\0plugin\0\x09xy'],
    ['an old authentication scheme', 0x200 | 0x8_0000, 'me\0\0plugin\0'],
    ['an old protocol', 0x8000 | 0x8_0000, 'me\0\0plugin\0'],
  ])('with %s is rejected', (_what, capabilities, rest) => {
    const head = Buffer.alloc(32)
    head.writeUInt32LE(capabilities >>> 0)
    expect(asSent(Buffer.concat([head, Buffer.from(rest, 'latin1')]))).toBeNull()
  })

  /** A valid login with a few changed bytes, because random bytes are almost never a login. */
  const nearlyLogins = fc
    .tuple(logins, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }))
    .map(([login, changes]) => {
      const { payload } = writeLogin(login, { offered: EVERYTHING, isSecure: true })
      for (const [at, byte] of changes) payload[at % payload.length] = byte
      return payload
    })

  it('with arbitrary bytes is parsed or rejected without an exception', () => {
    let read = 0
    const whole = writeLogin(
      { capabilities: BASE, longestPacket: 1, charset: 1, user: SALT, database: SALT, attributes: SALT },
      { offered: EVERYTHING, isSecure: true },
    )
    fc.assert(
      fc.property(fc.oneof(anyBytes, nearlyLogins), (payload) => {
        const login = asSent(payload)
        if (!login) return
        read += 1
        expect(login.user.length).toBeLessThan(payload.length)
      }),
      { examples: [[whole.payload]] },
    )
    expect(read).toBeGreaterThan(0)
  })
})

describe('on a connection without TLS, a server', () => {
  const switchTo = (plugin: string) =>
    Buffer.concat([Buffer.from([0xfe]), Buffer.from(`${plugin}\0${'s'.repeat(20)}\0`)])

  it.each(['mysql_native_password', 'caching_sha2_password', 'client_ed25519'])(
    'may use the plugin %s',
    (plugin) => {
      expect(asksForPassword(switchTo(plugin))).toBe(false)
      expect(asksForPassword(Buffer.from([0x01, 0x03]))).toBe(false)
    },
  )

  it.each([
    ['a password with mysql_clear_password', switchTo('mysql_clear_password')],
    ['a password with the dialog plugin', switchTo('dialog')],
    ['a password with an unknown plugin', switchTo('mysql_native_password_not')],
    ['authentication of the time before 4.1', Buffer.from([0xfe])],
    ['the full password', Buffer.from([0x01, 0x04])],
    ['a second factor', Buffer.from([0x02, 0x61, 0x00])],
    ['authentication with an empty packet', Buffer.alloc(0)],
  ])('may not ask for %s', (_what, payload) => {
    expect(asksForPassword(payload)).toBe(true)
  })
})
