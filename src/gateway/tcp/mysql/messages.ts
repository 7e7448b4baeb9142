// The few messages of MySQL's protocol, which is MariaDB's, that the gateway reads and writes itself: greetings, what
// answers them, and errors. Pure. (MySQL's documentation: "Connection Phase"; MariaDB's: "Connecting".)

import { counted, readerOf, zeroEnded } from './fields.ts'
import { type Packet, writePacket } from './packets.ts'

/** What a client or server is able to do, by the bits both name it with; those the gateway has to know of. */
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
 * What clients are offered before it is known which server they mean. What is agreed on here changes what both say
 * later, so it is only what every server can do, or may be asked for without being able to: no compression, no
 * attributes of queries, no other end of results.
 */
const OFFERED = Object.values(can).reduce((all, bit) => all | bit, 0)

/**
 * Drivers of MySQL choose by it what they ask a server first, and those that want to know more ask for the version
 * by a query: which the unit answers.
 */
const VERSION = '8.0.36-berth'
/** The one that lets its client answer at once, and never with a password that can be read. */
const FIRST_PLUGIN = 'caching_sha2_password'
/** Nobody has one of this name: the server has to say which one it wants, and to send a salt of its own. */
const NO_PLUGIN = 'auth_unknown_plugin'
const UTF8MB4 = 45
const AUTOCOMMIT = 2
export const SALT_BYTES = 20
const SALT_HEAD_BYTES = 8
/** Capabilities, the longest packet, a character set and 23 bytes that say nothing. */
const HEAD_BYTES = 32
const NOTHING = Buffer.alloc(0)
/** Attributes may take 64 kB, and names are short. */
export const MAX_LOGIN_BYTES = 70_000

/** The first thing of all. `salt` must have no zero bytes: clients take one for its end. */
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

/** What a client says to that: that it wants TLS, or all of its answer without. */
export function readAnswer({ number, payload }: Packet): 'tls' | 'plain' | 'wrong' {
  if (number !== 1 || payload.length < HEAD_BYTES) return 'wrong'
  const capabilities = payload.readUInt32LE(0)
  if (!has(capabilities, can.protocol41)) return 'wrong'
  return payload.length === HEAD_BYTES && has(capabilities, can.tls) ? 'tls' : 'plain'
}

/** Who wants in. What they say of their password is for our salt, and no use to anybody. */
export type Login = {
  capabilities: number
  longestPacket: number
  charset: number
  user: Buffer
  /** Empty: none. */
  database: Buffer
  attributes: Buffer
}

/** By TLS. The bit that says so is not looked at: some drivers forget to repeat it. Null: it is none. */
export function readLogin({ number, payload }: Packet): Login | null {
  if (number !== 2 || payload.length <= HEAD_BYTES) return null
  const capabilities = payload.readUInt32LE(0)
  const target = can.protocol41 | can.secureConnection | can.pluginAuth
  if ((capabilities & target) !== target) return null
  const reader = readerOf(payload.subarray(HEAD_BYTES))
  const user = reader.zeroEnded()
  const secret = has(capabilities, can.longAuth) ? reader.counted() : reader.short()
  const database = has(capabilities, can.connectWithDatabase) ? reader.zeroEnded() : NOTHING
  // Of the plugin nothing is to be known, and some leave out the end of its name.
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
  /** `sessionId`: by which its sessions are killed. */
  | { kind: 'greets'; sessionId: number; capabilities: number; hasTls: boolean }
  | { kind: 'refuses'; code: number; message: string }
  | { kind: 'wrong' }

/** What a unit's server says first. One that cannot be asked for another salt is too old (MySQL 5.5.7). */
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

/** Said to a unit before TLS. */
export function askForTls(login: Login, offered: number): Buffer {
  return writePacket({ number: 1, payload: headOf(login, offered, true) })
}

/** The client's login for its unit: what both are able to do, and nothing of a password. */
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
  // MariaDB leaves this bit out where it has more to offer in the bytes that say nothing: which nobody asks for.
  head.writeUInt32LE((agreed | can.longPassword) >>> 0, 0)
  head.writeUInt32LE(longestPacket, 4)
  head.writeUInt8(charset, 8)
  return head
}

/** Ways that show nobody a password, and no more of it than a hash for one salt. */
const hashing = ['mysql_native_password', FIRST_PLUGIN, 'client_ed25519', 'parsec']
const OK = 0x00
const MORE = 0x01
const SWITCH = 0xfe
const ERROR = 0xff
/** Of caching_sha2_password: the server knows no hash of it, and wants it as it is. */
const IN_FULL = 0x04

/** Whether a server may be asking, while a client logs in, for its password as it is. */
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

/** One before a greeting has no state, or has one though it should not. */
function readError(payload: Buffer): ServerGreeting {
  if (payload.length < 3) return { kind: 'wrong' }
  const text = payload.subarray(3, 3 + 512).toString('utf8')
  return { kind: 'refuses', code: payload.readUInt16LE(1), message: text.replace(/^#.{5}/, '') }
}

function has(capabilities: number, bit: number): boolean {
  return (capabilities & bit) !== 0
}
