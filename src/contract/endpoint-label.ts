// The label of an endpoint's host name, `<name>-<random>` or, private, `<name>-<random>-<secret>`. Whoever makes
// labels and whoever reads them does it here.
//
// A label is read from its end: the last part of a private one has 26 characters, that of a public one 10, so
// that no name can make one pass for the other. A DNS label has 63 characters; these have at most 58. No two
// hyphens follow each other, which only encoded international names may (RFC 5891).

import { createHash, randomBytes } from 'node:crypto'

export const labelGrammar = {
  /** Of the unit's name; what is longer is cut. */
  nameLength: 20,
  /** 50 bits: keeps a label from being guessed, or made twice. */
  randomLength: 10,
  /** 130 bits. */
  secretLength: 26,
} as const

/** Base32 of RFC 4648 in lower case: host names do not tell cases apart. */
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

const { nameLength, randomLength, secretLength } = labelGrammar
const LABEL = new RegExp(
  `^([a-z0-9](?:[a-z0-9]|-(?!-)){0,${nameLength - 1}}-[a-z2-7]{${randomLength}})(?:-([a-z2-7]{${secretLength}}))?$`,
)

/** `name`: what the endpoint is stored and found by. */
export type EndpointLabel = { name: string; secret: string | null }

/** A new name of an endpoint. A private one's label has a secret behind it. */
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

/** What is stored of a secret. It has enough bits of its own to need no salt. */
export function hashEndpointSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

export function formatEndpointLabel({ name, secret }: EndpointLabel): string {
  return secret === null ? name : `${name}-${secret}`
}

/** Null: no label of an endpoint, so there is nothing to look up. */
export function parseEndpointLabel(label: string): EndpointLabel | null {
  const match = LABEL.exec(label)
  return match?.[1] === undefined ? null : { name: match[1], secret: match[2] ?? null }
}

function randomText(length: number): string {
  // 32 divides 256: every character is as likely as any other.
  return Array.from(randomBytes(length), (byte) => ALPHABET[byte % ALPHABET.length]).join('')
}
