// OpenSSL and Node’s X.509 parser read what we sign.

import { createHash, X509Certificate } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runOrThrow } from '../lib/process.ts'
import { integer, objectId, octets } from './der.ts'
import { makeKey, proofCertificate, signingRequest } from './signed.ts'

let home: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'berth-signed-'))
})
afterAll(async () => await rm(home, { recursive: true }))

async function openssl(der: Buffer, ...args: string[]): Promise<string> {
  const file = join(home, 'input.der')
  await writeFile(file, der)
  return await runOrThrow('openssl', [...args, '-in', file], { timeoutMs: 20_000 })
}

it.each([1, 3, 100])('OpenSSL verifies a request for %d names and finds all of them', async (count) => {
  const names = Array.from({ length: count }, (_, index) => `name-${index}.example.com`)
  const text = await openssl(
    signingRequest(names, await makeKey()),
    'req',
    '-inform',
    'DER',
    '-noout',
    '-text',
    '-verify',
  )
  expect(text).toContain('Signature Algorithm: ecdsa-with-SHA256')
  expect([...text.matchAll(/DNS:([^,\s]+)/g)].map(([, name]) => name)).toEqual(names)
})

it('a proof is a certificate for one name with the digest of the key authorization', async () => {
  const key = await makeKey()
  const now = new Date('2027-03-01T12:00:00.123Z')
  const pem = proofCertificate({ name: 'a.example.com', keyAuthorization: 'token.thumbprint' }, { key, now })
  const certificate = new X509Certificate(pem)
  expect(certificate.subjectAltName).toBe('DNS:a.example.com')
  expect(certificate.verify(certificate.publicKey)).toBe(true)
  expect(certificate.checkPrivateKey(key)).toBe(true)
  expect(certificate.validFromDate).toEqual(new Date('2027-03-01T11:00:00Z'))
  expect(certificate.validToDate).toEqual(new Date('2027-03-02T12:00:00Z'))
  const text = await openssl(certificate.raw, 'x509', '-inform', 'DER', '-noout', '-text')
  const digest = createHash('sha256').update('token.thumbprint').digest('hex').toUpperCase()
  // An OCTET STRING within that of the extension.
  expect(text.replaceAll(/[\s:]/g, '')).toContain('1.3.6.1.5.5.7.1.31critical')
  expect(certificate.raw.includes(Buffer.from(`0420${digest}`, 'hex'))).toBe(true)
})

it.each([
  ['an object id of large numbers', objectId('1.2.840.10045.4.3.2'), '06082a8648ce3d040302'],
  ['a number whose highest bit is set', integer(Buffer.from([0x80])), '02020080'],
  ['a number with zeros before it', integer(Buffer.from([0, 0, 0x7f])), '02017f'],
  ['a number that is zero', integer(Buffer.from([0, 0])), '020100'],
  ['127 bytes', octets(Buffer.alloc(127)).subarray(0, 2), '047f'],
  ['128 bytes', octets(Buffer.alloc(128)).subarray(0, 3), '048180'],
  ['256 bytes', octets(Buffer.alloc(256)).subarray(0, 4), '04820100'],
])('the DER encoder writes %s as X.690 says', (_what, written, hex) => {
  expect(written.toString('hex')).toBe(hex)
})
