// The messages of MySQL's protocol (which MariaDB shares) that the gateway itself reads and writes: greetings, their
// answers, and errors. Pure. (MySQL's documentation: "Connection Phase"; MariaDB's: "Connecting".)

import { counted, readerOf, zeroEnded } from './fields.ts'
import { type Packet, writePacket } from './packets.ts'

/** The capability flags that the gateway must know. */
const can = {
  longPassword: 1 << 0,
  foundRows: 1 << 1,
  longFlag: 1 << 2,
  connectWithDatabase: 1 << 3,
  localFiles: 1 << 7,
  ignoreSpace: 1 << 8,
  protocol41: 1 << 9,
  interactive: 1 << 10,
  tls: 1 << 11,
  transactions: 1 << 13,
  secureConnection: 1 << 15,
  multiStatements: 1 << 16,
  multiResults: 1 << 17,
  preparedMultiResults: 1 << 18,
  pluginAuth: 1 << 19,
  attributes: 1 << 20,
  longAuth: 1 << 21,
  expiredPasswords: 1 << 22,
} as const

/**
 * The capabilities offered to clients before the server is known. They change the rest of the protocol, so only those
 * that every server has, or can be asked for safely: no compression, no query attributes, no other end of results.
 */
const OFFERED = Object.values(can).reduce((all, bit) => all | bit, 0)

/**
 * Drivers choose their first queries by this version; those that need the exact version ask by a query, which the
 * unit answers.
 */
const VERSION = '8.0.36-berth'
/** The plugin that lets its client answer at once, without sending a readable password. */
const FIRST_PLUGIN = 'caching_sha2_password'
/** A plugin that does not exist: the server must name the one it wants, and send its own salt. */
const NO_PLUGIN = 'auth_unknown_plugin'
const UTF8MB4 = 45
const AUTOCOMMIT = 2
export const SALT_BYTES = 20
const SALT_HEAD_BYTES = 8
/** Capabilities, the longest packet, a character set and 23 reserved bytes. */
const HEAD_BYTES = 32
const NOTHING = Buffer.alloc(0)
/** Attributes may take 64 kB, and names are short. */
export const MAX_LOGIN_BYTES = 70_000

/** The first message. `salt` must contain no zero bytes: clients take one for its end. */
export function greetClient({ salt, sessionId }: { salt: Buffer; sessionId: number }): Buffer {
  const head = Buffer.alloc(4)
  head.writeUInt32LE(sessionId)
  const body = Buffer.alloc(7 + 1 + 10)
  body.writeUInt16LE(OFFERED & 0xffff, 0)
  body.writeUInt8(UTF8MB4, 2)
  body.writeUInt16LE(AUTOCOMMIT, 3)
  body.writeUInt16LE(OFFERED >>> 16, 5)
  body.writeUInt8(SALT_BYTES + 1, 7)
  const payload = [
    Buffer.from([10]),
    zeroEnded(VERSION),
    head,
    salt.subarray(0, SALT_HEAD_BYTES),
    Buffer.from([0]),
    body,
    zeroEnded(salt.subarray(SALT_HEAD_BYTES)),
    zeroEnded(FIRST_PLUGIN),
  ]
  return writePacket({ number: 0, payload: Buffer.concat(payload) })
}

/** Parses a client's answer: a request for TLS, or a whole login without TLS. */
export function readAnswer({ number, payload }: Packet): 'tls' | 'plain' | 'wrong' {
  if (number !== 1 || payload.length < HEAD_BYTES) return 'wrong'
  const capabilities = payload.readUInt32LE(0)
  if (!has(capabilities, can.protocol41)) return 'wrong'
  return payload.length === HEAD_BYTES && has(capabilities, can.tls) ? 'tls' : 'plain'
}

/** A client's login. Its answer about the password is for the gateway's salt, and useless elsewhere. */
export type Login = {
  capabilities: number
  longestPacket: number
  charset: number
  user: Buffer
  /** Empty if there is none. */
  database: Buffer
  attributes: Buffer
}

/** For a login over TLS. Some drivers do not repeat the TLS flag, so it is ignored. Returns null if it is invalid. */
export function readLogin({ number, payload }: Packet): Login | null {
  if (number !== 2 || payload.length <= HEAD_BYTES) return null
  const capabilities = payload.readUInt32LE(0)
  const target = can.protocol41 | can.secureConnection | can.pluginAuth
  if ((capabilities & target) !== target) return null
  const reader = readerOf(payload.subarray(HEAD_BYTES))
  const user = reader.zeroEnded()
  const secret = has(capabilities, can.longAuth) ? reader.counted() : reader.short()
  const database = has(capabilities, can.connectWithDatabase) ? reader.zeroEnded() : NOTHING
  // The plugin does not matter, and some clients omit the end of its name.
  const plugin = reader.zeroEnded() ?? reader.rest()
  const attributes = has(capabilities, can.attributes) && !reader.isAtEnd() ? reader.counted() : NOTHING
  if (!user || !secret || !database || !plugin || !attributes) return null
  return {
    capabilities,
    longestPacket: payload.readUInt32LE(4),
    charset: payload.readUInt8(8),
    user,
    database,
    attributes,
  }
}

export type ServerGreeting =
  /** `sessionId`: the id that KILL uses. */
  | { kind: 'greets'; sessionId: number; capabilities: number; hasTls: boolean }
  | { kind: 'refuses'; code: number; message: string }
  | { kind: 'wrong' }

/**
 * Parses the first message of a unit's server. A server that cannot be asked for another salt is too old (MySQL
 * 5.5.7).
 */
export function readGreeting({ number, payload }: Packet): ServerGreeting {
  if (number !== 0) return { kind: 'wrong' }
  if (payload[0] === 0xff) return readError(payload)
  const versionEnd = payload.indexOf(0, 1)
  const at = versionEnd + 1 + 4 + SALT_HEAD_BYTES + 1
  if (payload[0] !== 10 || versionEnd < 0 || payload.length < at + 7) return { kind: 'wrong' }
  const capabilities = payload.readUInt16LE(at) + payload.readUInt16LE(at + 5) * 0x1_0000
  const target = can.protocol41 | can.secureConnection | can.pluginAuth
  if ((capabilities & target) !== target) return { kind: 'wrong' }
  const sessionId = payload.readUInt32LE(versionEnd + 1)
  return { kind: 'greets', sessionId, capabilities, hasTls: has(capabilities, can.tls) }
}

/** Sent to a unit before TLS. */
export function askForTls(login: Login, offered: number): Buffer {
  return writePacket({ number: 1, payload: headOf(login, offered, true) })
}

/** Writes the client's login for its unit: the capabilities of both, and nothing about a password. */
export function writeLogin(
  login: Login,
  { offered, isSecure }: { offered: number; isSecure: boolean },
): Packet {
  const { user, database, attributes } = login
  const head = headOf(login, offered, isSecure)
  const agreed = head.readUInt32LE(0)
  const payload = [head, zeroEnded(user), Buffer.from([0])]
  if (has(agreed, can.connectWithDatabase)) payload.push(zeroEnded(database))
  payload.push(zeroEnded(NO_PLUGIN))
  if (has(agreed, can.attributes)) payload.push(counted(attributes))
  return { number: isSecure ? 2 : 1, payload: Buffer.concat(payload) }
}

function headOf({ capabilities, longestPacket, charset }: Login, offered: number, isSecure: boolean): Buffer {
  const agreed = (capabilities & offered & OFFERED & ~can.tls) | (isSecure ? can.tls : 0)
  const head = Buffer.alloc(HEAD_BYTES)
  // MariaDB clears this bit to announce more capabilities in the reserved bytes, which are not requested.
  head.writeUInt32LE((agreed | can.longPassword) >>> 0, 0)
  head.writeUInt32LE(longestPacket, 4)
  head.writeUInt8(charset, 8)
  return head
}

/** Plugins that reveal no password, only a hash for one salt. */
const hashing = ['mysql_native_password', FIRST_PLUGIN, 'client_ed25519', 'parsec']
const OK = 0x00
const MORE = 0x01
const SWITCH = 0xfe
const ERROR = 0xff
/** In caching_sha2_password: the server has no cached hash, and wants the password itself. */
const IN_FULL = 0x04

/** Whether a server may be asking for the readable password during a login. */
export function asksForPassword(payload: Buffer): boolean {
  switch (payload[0]) {
    case OK:
    case ERROR:
      return false
    case MORE:
      return payload.length === 2 && payload[1] === IN_FULL
    case SWITCH:
      return !hashing.some((plugin) => payload.subarray(1).toString('latin1').startsWith(`${plugin}\0`))
    default:
      return true
  }
}

export type ServerError = { code: number; state: string; message: string }

export function errorPacket(number: number, { code, state, message }: ServerError): Buffer {
  const head = Buffer.from([0xff, code & 0xff, code >> 8])
  return writePacket({ number, payload: Buffer.concat([head, Buffer.from(`#${state}${message}`)]) })
}

/** An error before a greeting normally has no SQL state; some servers send one anyway. */
function readError(payload: Buffer): ServerGreeting {
  if (payload.length < 3) return { kind: 'wrong' }
  const text = payload.subarray(3, 3 + 512).toString('utf8')
  return { kind: 'refuses', code: payload.readUInt16LE(1), message: text.replace(/^#.{5}/, '') }
}

function has(capabilities: number, bit: number): boolean {
  return (capabilities & bit) !== 0
}
