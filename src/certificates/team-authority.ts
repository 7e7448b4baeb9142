// The certificates of a team's own authority, which vouches for the hosts of brokered secrets to the team's units alone
// (decisions/brokered-secrets.md), and of those hosts. Pure. What strict verifiers ask for is in them (RFC 5280 4.2,
// CA/Browser Forum Baseline Requirements 7.1).

import { createHash, type KeyObject } from 'node:crypto'
import { DAY } from '../lib/clock.ts'
import {
  isTrue,
  namedBits,
  objectId,
  octets,
  sequence,
  set,
  taggedValue,
  text,
  utcTime,
  tagged,
} from './der.ts'
import {
  alternativeNames,
  certificatePem,
  COMMON_NAME,
  ECDSA_WITH_SHA256,
  publicKeyOf,
  serialNumber,
  signed,
  VERSION_3,
} from './signed.ts'

const AUTHORITY_DAYS = 3650
const LEAF_DAYS = 7
/** The clock of a unit, or of a restored memory, may be behind. */
const BACKDATED_DAYS = 1

const ORGANIZATION = objectId('2.5.4.10')
const SUBJECT_KEY_ID = objectId('2.5.29.14')
const KEY_USAGE = objectId('2.5.29.15')
const BASIC_CONSTRAINTS = objectId('2.5.29.19')
const AUTHORITY_KEY_ID = objectId('2.5.29.35')
const EXTENDED_KEY_USAGE = objectId('2.5.29.37')
const SERVER_AUTH = objectId('1.3.6.1.5.5.7.3.1')

/** keyCertSign and cRLSign are bits 5 and 6; digitalSignature is bit 0. */
const SIGNS_CERTIFICATES = namedBits(0b0000_0110, 1)
const SIGNS_HANDSHAKES = namedBits(0b1000_0000, 7)
const PATH_LENGTH_0 = Buffer.from([0x02, 0x01, 0x00])

/** `name`: its common name, at most 64 characters. Returns PEM. */
export function authorityCertificate(name: string, { key, now }: { key: KeyObject; now: Date }): string {
  const subject = authorityName(name)
  const extensions = [
    sequence(BASIC_CONSTRAINTS, isTrue, octets(sequence(isTrue, PATH_LENGTH_0))),
    sequence(KEY_USAGE, isTrue, octets(SIGNS_CERTIFICATES)),
    sequence(SUBJECT_KEY_ID, octets(octets(keyId(key)))),
  ]
  const by = { issuer: subject, signer: key, days: AUTHORITY_DAYS, now }
  return certificate({ subject, key, extensions }, by)
}

/** A host's certificate, by the authority with this name and key. Returns PEM. */
export function hostCertificate(
  host: string,
  key: KeyObject,
  authority: { name: string; key: KeyObject },
  now: Date,
): string {
  // A common name has at most 64 characters; verifiers go by the alternative name.
  const subject = sequence(set(sequence(COMMON_NAME, text(host.slice(0, 64)))))
  const extensions = [
    sequence(BASIC_CONSTRAINTS, isTrue, octets(sequence())),
    sequence(KEY_USAGE, isTrue, octets(SIGNS_HANDSHAKES)),
    sequence(EXTENDED_KEY_USAGE, octets(sequence(SERVER_AUTH))),
    sequence(SUBJECT_KEY_ID, octets(octets(keyId(key)))),
    sequence(AUTHORITY_KEY_ID, octets(sequence(taggedValue(0, keyId(authority.key))))),
    alternativeNames([host]),
  ]
  const by = { issuer: authorityName(authority.name), signer: authority.key, days: LEAF_DAYS, now }
  return certificate({ subject, key, extensions }, by)
}

function certificate(
  { subject, key, extensions }: { subject: Buffer; key: KeyObject; extensions: Buffer[] },
  { issuer, signer, days, now }: { issuer: Buffer; signer: KeyObject; days: number; now: Date },
): string {
  const from = now.getTime() - BACKDATED_DAYS * DAY
  const content = sequence(
    VERSION_3,
    serialNumber(),
    ECDSA_WITH_SHA256,
    issuer,
    sequence(utcTime(new Date(from)), utcTime(new Date(from + days * DAY))),
    subject,
    publicKeyOf(key),
    tagged(3, sequence(...extensions)),
  )
  return certificatePem(signed(content, signer))
}

function authorityName(name: string): Buffer {
  return sequence(set(sequence(ORGANIZATION, text('Berth'))), set(sequence(COMMON_NAME, text(name))))
}

function keyId(key: KeyObject): Buffer {
  return createHash('sha1').update(publicKeyOf(key)).digest()
}
