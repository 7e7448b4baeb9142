// The X.509 structures that we sign for an authority: the certificate request (RFC 2986), and the certificate that
// proves control of a name over TLS (RFC 8737). Keys are ECDSA on P-256.

import { createHash, createPublicKey, generateKeyPair, type KeyObject, randomBytes, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { DAY, HOUR } from '../lib/clock.ts'
import {
  bits,
  integer,
  isTrue,
  objectId,
  octets,
  sequence,
  set,
  tagged,
  taggedValue,
  text,
  utcTime,
} from './der.ts'

export const ECDSA_WITH_SHA256 = sequence(objectId('1.2.840.10045.4.3.2'))
export const COMMON_NAME = objectId('2.5.4.3')
const SUBJECT_ALT_NAME = objectId('2.5.29.17')
const EXTENSION_REQUEST = objectId('1.2.840.113549.1.9.14')
const ACME_IDENTIFIER = objectId('1.3.6.1.5.5.7.1.31')

/** The tag `[2]` of a GeneralName is a DNS name. */
const DNS_NAME = 2
export const VERSION_3 = tagged(0, integer(Buffer.from([2])))

export async function makeKey(): Promise<KeyObject> {
  return (await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' })).privateKey
}

export function toPem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** Returns the request in DER. The names are only in the extension, where authorities look for them. */
export function signingRequest(names: string[], key: KeyObject): Buffer {
  const extensions = tagged(0, sequence(EXTENSION_REQUEST, set(sequence(alternativeNames(names)))))
  const subject = sequence()
  return signed(sequence(integer(Buffer.from([0])), subject, publicKeyOf(key), extensions), key)
}

/** Returns, in PEM, a certificate for one name with the digest that the authority checks. */
export function proofCertificate(
  { name, keyAuthorization }: { name: string; keyAuthorization: string },
  { key, now }: { key: KeyObject; now: Date },
): string {
  const subject = sequence(set(sequence(COMMON_NAME, text('ACME proof'))))
  // The clocks may differ.
  const validity = sequence(utcTime(new Date(now.getTime() - HOUR)), utcTime(new Date(now.getTime() + DAY)))
  const digest = createHash('sha256').update(keyAuthorization).digest()
  const isCritical = isTrue
  const proof = sequence(ACME_IDENTIFIER, isCritical, octets(octets(digest)))
  const der = signed(
    sequence(
      VERSION_3,
      serialNumber(),
      ECDSA_WITH_SHA256,
      subject,
      validity,
      subject,
      publicKeyOf(key),
      tagged(3, sequence(alternativeNames([name]), proof)),
    ),
    key,
  )
  return certificatePem(der)
}

export function serialNumber(): Buffer {
  return integer(randomBytes(16))
}

export function certificatePem(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

export function alternativeNames(names: string[]): Buffer {
  const all = names.map((name) => taggedValue(DNS_NAME, Buffer.from(name, 'latin1')))
  return sequence(SUBJECT_ALT_NAME, octets(sequence(...all)))
}

export function publicKeyOf(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: 'spki', format: 'der' })
}

export function signed(content: Buffer, key: KeyObject): Buffer {
  return sequence(content, ECDSA_WITH_SHA256, bits(sign('sha256', content, key)))
}
