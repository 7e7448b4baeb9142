// The label of an endpoint's host name: `<name>-<random>` or, for a private one, `<name>-<random>-<secret>`. All code
// that makes or parses labels uses this file.
//
// A label is parsed from its end: the last part of a private one has 26 characters, that of a public one 10, so no
// unit name can make one pass for the other. A DNS label has at most 63 characters; these have at most 58. Two
// hyphens never follow each other, since only encoded international names may have them (RFC 5891).

import { createHash, randomBytes } from 'node:crypto'

export const labelGrammar = {
  /** Characters of the unit's name that are kept. */
  nameLength: 20,
  /** 50 bits: too many to guess, and enough that two labels never collide. */
  randomLength: 10,
  /** 130 bits. */
  secretLength: 26,
} as const

/** Base32 of RFC 4648 in lower case, because host names ignore case. */
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

const { nameLength, randomLength, secretLength } = labelGrammar
const LABEL = new RegExp(
  `^([a-z0-9](?:[a-z0-9]|-(?!-)){0,${nameLength - 1}}-[a-z2-7]{${randomLength}})(?:-([a-z2-7]{${secretLength}}))?$`,
)

/** `name`: the part that identifies the endpoint in the database. */
export type EndpointLabel = { name: string; secret: string | null }

/** Returns a new endpoint name. The label of a private endpoint has a secret after it. */
export function newEndpointName(unitName: string): string {
  const readable = unitName
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, nameLength)
    .replace(/-$/, '')
  return `${readable === '' ? 'unit' : readable}-${randomText(randomLength)}`
}

export function newEndpointSecret(): string {
  return randomText(secretLength)
}

/** The stored form of a secret. The secret has enough entropy to need no salt. */
export function hashEndpointSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

export function formatEndpointLabel({ name, secret }: EndpointLabel): string {
  return secret === null ? name : `${name}-${secret}`
}

/** Returns null if the label cannot be an endpoint's, so no look-up is needed. */
export function parseEndpointLabel(label: string): EndpointLabel | null {
  const match = LABEL.exec(label)
  return match?.[1] === undefined ? null : { name: match[1], secret: match[2] ?? null }
}

function randomText(length: number): string {
  // 32 divides 256, so every character is equally likely.
  return Array.from(randomBytes(length), (byte) => ALPHABET[byte % ALPHABET.length]).join('')
}
