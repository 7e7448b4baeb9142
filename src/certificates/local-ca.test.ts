// The certificate authority of an installation: made once, for one domain, and valid for nothing else.

import { X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { DAY } from '../lib/clock.ts'
import { run, runOrThrow } from '../lib/process.ts'
import { issueLocally, localCaFile, prepareLocalCa } from './local-ca.ts'

const DOMAIN = 'apps.example.com'
const within = { timeoutMs: 20_000 }

let dataDir: string
let keyFile: string

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'berth-ca-'))
  keyFile = join(dataDir, 'ca', 'ca.key')
})
afterEach(async () => await rm(dataDir, { recursive: true }))

const prepare = async (domain = DOMAIN, daysAhead = 0) =>
  await prepareLocalCa(dataDir, domain, new Date(Date.now() + daysAhead * DAY))
const authority = async () => new X509Certificate(await readFile(localCaFile(dataDir)))

/** Signs a certificate for these names with the authority’s key, and returns what `openssl verify` prints. */
async function verify(names: string): Promise<string> {
  const [request, cert, extensions] = ['req', 'crt', 'ext'].map((name) => join(dataDir, name)) as [
    string,
    string,
    string,
  ]
  const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=stolen']
  await runOrThrow('openssl', ['req', ...made, '-keyout', '/dev/null', '-out', request], within)
  await writeFile(extensions, `subjectAltName=${names}\n`)
  const signing = ['-CA', localCaFile(dataDir), '-CAkey', keyFile, '-days', '2', '-extfile', extensions]
  await runOrThrow('openssl', ['x509', '-req', '-in', request, ...signing, '-out', cert], within)
  const { stdout, stderr } = await run('openssl', ['verify', '-CAfile', localCaFile(dataDir), cert], within)
  return stdout + stderr
}

it('the authority is made once, and only root can read its key', async () => {
  await prepare()
  const { serialNumber } = await authority()
  await prepare()
  expect((await authority()).serialNumber).toBe(serialNumber)
  expect((await stat(keyFile)).mode & 0o777).toBe(0o600)
  expect((await stat(localCaFile(dataDir))).mode & 0o777).toBe(0o644)
})

it('the authority signs for its domain and every name directly below it', async () => {
  await prepare()
  const pem = await issueLocally(dataDir, DOMAIN)
  const issued = new X509Certificate(pem)
  expect(issued.verify((await authority()).publicKey)).toBe(true)
  expect(issued.checkHost(DOMAIN)).toBeDefined()
  expect(issued.checkHost(`web-abcdefghij.${DOMAIN}`)).toBeDefined()
  expect(issued.checkHost(`www.web-abcdefghij.${DOMAIN}`)).toBeUndefined()
  expect(pem).toContain('PRIVATE KEY')
})

it('a certificate that it signs for another domain or an address fails verification', async () => {
  await prepare()
  expect(await verify(`DNS:anything.${DOMAIN}`)).toContain(': OK')
  for (const names of ['DNS:example.com', 'DNS:bank.example', `DNS:x.${DOMAIN},DNS:bank.example`]) {
    expect(await verify(names), names).toContain('permitted subtree violation')
  }
  for (const names of ['IP:127.0.0.1', 'IP:::1']) {
    expect(await verify(names), names).toContain('excluded subtree violation')
  }
})

it('the authority is replaced when the domain changes', async () => {
  await prepare()
  const { publicKey } = await authority()
  await prepare('other.example.com')
  const issued = new X509Certificate(await issueLocally(dataDir, 'other.example.com'))
  expect(issued.verify(publicKey)).toBe(false)
  expect(issued.checkHost('x.other.example.com')).toBeDefined()
  expect(await verify('DNS:x.other.example.com')).toContain(': OK')
})

it('the authority is replaced before it expires, so that no certificate outlives it', async () => {
  await prepare()
  const { serialNumber } = await authority()
  await prepare(DOMAIN, 3650 - 100)
  expect((await authority()).serialNumber).toBe(serialNumber)
  await prepare(DOMAIN, 3650 - 80)
  expect((await authority()).serialNumber).not.toBe(serialNumber)
})

it.each([
  ['its certificate is missing', async () => await rm(localCaFile(dataDir))],
  [
    'its certificate is incomplete',
    async () => await writeFile(localCaFile(dataDir), '-----BEGIN CERTIFICATE-----\nMII'),
  ],
  ['its key is missing', async () => await rm(keyFile)],
  ['its key is empty', async () => await writeFile(keyFile, '')],
  [
    'its key is left from an interrupted creation',
    async () => {
      const making = ['genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', keyFile]
      await runOrThrow('openssl', making, within)
    },
  ],
])('the authority is made again where %s', async (_what, cutShort) => {
  await prepare()
  await cutShort()
  await prepare()
  const issued = new X509Certificate(await issueLocally(dataDir, DOMAIN))
  expect(issued.verify((await authority()).publicKey)).toBe(true)
  expect((await stat(keyFile)).mode & 0o777).toBe(0o600)
})
