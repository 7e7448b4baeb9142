// Bearer tokens of all kinds: a visible mark, a prefix to look the row up by, and a secret of 256 random bits. Only
// the prefix and the SHA-256 of the whole token are stored (design 7).

import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'

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

/** Derives a token from another one with a key: the same input gives the same token, so it need not be stored. */
export function followingToken(kind: TokenKind, key: Buffer, from: string): NewToken {
  return tokenOf(kind, createHmac('sha512', key).update(`${kind} token after ${from}`).digest())
}

function tokenOf(kind: TokenKind, bytes: Buffer): NewToken {
  const prefix = marks[kind] + bytes.subarray(0, PREFIX_BYTES).toString('hex')
  const secret = bytes.subarray(PREFIX_BYTES, PREFIX_BYTES + SECRET_BYTES).toString('base64url')
  const token = `${prefix}_${secret}`
  return { token, prefix, hash: hashToken(token) }
}

/** Returns the prefix to look up, or null if the text is not a token of this kind. */
export function tokenPrefix(kind: TokenKind, text: string): string | null {
  if (!text.startsWith(marks[kind])) return null
  const match = /^([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/.exec(text.slice(marks[kind].length))
  return match ? `${marks[kind]}${match[1]}` : null
}

/** Whether a stored prefix belongs to a token of this kind. */
export function isPrefixOf(kind: TokenKind, prefix: string): boolean {
  return prefix.startsWith(marks[kind])
}

const hashOfNothing = randomBytes(32)

/** An unknown token (no stored hash) takes the same work as a known one with a wrong secret. */
export function tokenMatches(token: string, stored: Buffer | null): boolean {
  const equal = timingSafeEqual(hashToken(token), stored ?? hashOfNothing)
  return equal && stored !== null
}

function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}
