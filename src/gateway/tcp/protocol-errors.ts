// Messages of the gateway in protocols other than HTTP, if the protocol has one: why a connection failed, and that
// its server goes away. Otherwise the connection just closes.

import type { Protocol } from '../../contract/endpoint.ts'
import { type Outcome, errorMessageOf } from '../sessions/outcomes.ts'
import { errorPacket, type ServerError } from './mysql/messages.ts'
import { fatalError } from './postgres/messages.ts'

export type Tcp = Exclude<Protocol, 'http'>

const refusals: Partial<Record<Tcp, (outcome: Outcome) => Buffer>> = {
  postgres: (outcome) => {
    const { title, text, advice } = errorMessageOf(outcome)
    return fatalError(sqlStates[outcome.kind] ?? '57P03', `${title}. ${text}`, advice)
  },
  redis: (outcome) => {
    const { title, text } = errorMessageOf(outcome)
    return Buffer.from(`-ERR ${title}. ${text}\r\n`)
  },
  mysql: (outcome) => {
    const { title, text } = errorMessageOf(outcome)
    const error = mysqlErrorOf[outcome.kind] ?? { code: 1105, state: '08004' }
    // Sent instead of the answer to a login.
    return errorPacket(3, { ...error, message: `${title}. ${text}` })
  },
}

/** PostgreSQL's SQL states; 57P03, cannot connect now, for temporary errors. */
const sqlStates: Partial<Record<Outcome['kind'], string>> = {
  unknown: '08004',
  'missing-sni': '08004',
  malformed: '08P01',
  'too-many': '53300',
  'visitor-too-slow': '57P05',
}

/** MySQL's errors; 1105, unknown error, if there is none. */
const mysqlErrorOf: Partial<Record<Outcome['kind'], Omit<ServerError, 'message'>>> = {
  malformed: { code: 1043, state: '08S01' },
  'too-many': { code: 1040, state: '08004' },
  'visitor-too-slow': { code: 1159, state: '08S01' },
}

/** Other errors for MySQL clients. Each says what to do. */
export const mysqlErrors = {
  noTls: {
    code: 3159,
    state: 'HY000',
    message:
      'This server only accepts connections with TLS: use --ssl (MariaDB) or --ssl-mode=REQUIRED (MySQL).',
  },
  noName: {
    code: 1105,
    state: '08004',
    message:
      "Your client does not say which unit it means. Put the first part of the unit's host name before " +
      'the user name, NAME.USER where the host is NAME.DOMAIN, or use the portWithoutSni of the endpoint.',
  },
  noTlsInUnit: {
    code: 1251,
    state: '08004',
    message:
      'The server in this unit has no TLS, and your password would be sent to it in clear text. Turn TLS on in it, or ' +
      'identify the user by a plugin that sends no password.',
  },
} satisfies Record<string, ServerError>

/** Returns null if the protocol has no such message before a session. */
export function errorIn(protocol: Tcp, outcome: Outcome): Buffer | null {
  return refusals[protocol]?.(outcome) ?? null
}

const shutdowns: Partial<Record<Tcp, Buffer>> = {
  postgres: fatalError('57P01', 'terminating connection because the unit stops or falls asleep'),
  // The first packet after a command, when its client reads one.
  mysql: errorPacket(1, {
    code: 1053,
    state: '08S01',
    message: 'Server shutdown in progress: the unit stops or falls asleep',
  }),
}

/** For a client that waits for nothing: its session ends through no fault of its own. */
export function shutdownMessageIn(protocol: Tcp): Buffer | null {
  return shutdowns[protocol] ?? null
}
