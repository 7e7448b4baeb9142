// Bearer tokens of every kind: a visible mark, a prefix to find the row by, and a secret of 256 random
// bits. Only the prefix and the SHA-256 of the whole are ever stored (design 7).

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

const marks = {
  key: 'berth_live_',
  session: 'berth_session_',
  signIn: 'berth_signin_',
  providerSignIn: 'berth_provider_',
  invite: 'berth_invite_',
  access: 'berth_oat_',
  refresh: 'berth_ort_',
  code: 'berth_code_',
  consent: 'berth_consent_',
} as const satisfies Record<string, string>

export type TokenKind = keyof typeof marks

const PREFIX_BYTES = 6
const SECRET_BYTES = 32

export type NewToken = { token: string; prefix: string; hash: Buffer }

export function newToken(kind: TokenKind): NewToken {
  return tokenOf(kind, randomBytes(PREFIX_BYTES + SECRET_BYTES))
}

/** The token that follows from another one under a key: the same question has the same answer, which is kept nowhere. */
export function followingToken(kind: TokenKind, key: Buffer, from: string): NewToken {
  return tokenOf(kind, createHmac('sha512', key).update(`${kind} token after ${from}`).digest())
}

function tokenOf(kind: TokenKind, bytes: Buffer): NewToken {
  const prefix = marks[kind] + bytes.subarray(0, PREFIX_BYTES).toString('hex')
  const secret = bytes.subarray(PREFIX_BYTES, PREFIX_BYTES + SECRET_BYTES).toString('base64url')
  const token = `${prefix}_${secret}`
  return { token, prefix, hash: hashToken(token) }
}

/** The prefix to look up, or null where the text is no token of this kind. */
export function tokenPrefix(kind: TokenKind, text: string): string | null {
  if (!text.startsWith(marks[kind])) return null
  const match = /^([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/.exec(text.slice(marks[kind].length))
  return match ? `${marks[kind]}${match[1]}` : null
}

/** Of a prefix that was found: which kind of token it begins. */
export function isPrefixOf(kind: TokenKind, prefix: string): boolean {
  return prefix.startsWith(marks[kind])
}

const hashOfNothing = randomBytes(32)

/** An unknown token (no hash stored) costs the same work as a known one with a wrong secret. */
export function tokenMatches(token: string, hash: Buffer | null): boolean {
  const equal = timingSafeEqual(hashToken(token), hash ?? hashOfNothing)
  return equal && hash !== null
}

function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
