// The certificate that the gateway is given, from each of its three sources. Runs as root, because the file belongs
// to the gateway’s user.

import { X509Certificate } from 'node:crypto'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestClock, type TestClock } from '../../test/support/clock.ts'
import { type Pebble, startPebble } from '../../test/support/pebble.ts'
import type { Config } from '../config.ts'
import { openCertificates } from '../gateway/certificates/current.ts'
import { getAccount } from '../lib/system-users.ts'
import { DAY, HOUR, MINUTE } from '../lib/clock.ts'
import { silentLog } from '../lib/log.ts'
import { runOrThrow } from '../lib/process.ts'
import { caFileOf, prepareCertificate } from './default.ts'
import { issueLocally, prepareLocalCa } from './local-ca.ts'

const DOMAIN = 'apps.example.com'
const POLLING = { timeout: 20_000, interval: 50 }

type Settings = Pick<Config, 'dataDir' | 'domain' | 'tlsFiles' | 'acme'>

let dataDir: string
let file: string
let clock: TestClock
let stopping: AbortController
let keeping: Promise<void>[]

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'berth-certificates-'))
  file = join(dataDir, 'tls.pem')
  clock = createTestClock()
  stopping = new AbortController()
  keeping = []
})
afterEach(async () => {
  stopping.abort()
  await Promise.all(keeping)
  await rm(dataDir, { recursive: true })
})

const settings = (more: Partial<Settings> = {}): Settings => ({
  dataDir,
  domain: DOMAIN,
  tlsFiles: null,
  acme: null,
  ...more,
})

async function keep(config: Settings): Promise<void> {
  const kept = await prepareCertificate(config, file, clock)
  keeping.push(kept.keep({ log: silentLog, signal: stopping.signal }))
}

async function stop(): Promise<void> {
  stopping.abort()
  await Promise.all(keeping)
  stopping = new AbortController()
}

const shown = async () => new X509Certificate(await readFile(file))
const serial = async () => (await shown()).serialNumber

/** Advances the clock by a little more than the polling interval until the value matches. */
async function looksUntil<T>(read: () => Promise<T>, matches: (value: T) => boolean): Promise<T> {
  for (let looks = 0; looks < 400; looks += 1) {
    const value = await read()
    if (matches(value)) return value
    clock.advance(11_000)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new Error('it did not come to that')
}

describe('the certificate of the local authority', () => {
  it('is in a file that only the gateway can read', async () => {
    await keep(settings())
    const { uid } = await getAccount('berth-gateway')
    const { uid: owner, mode } = await stat(file)
    expect([owner, mode & 0o777]).toEqual([uid, 0o400])
    expect(caFileOf(settings())).toBe(join(dataDir, 'ca', 'ca.crt'))
    expect((await shown()).checkHost(`x.${DOMAIN}`)).toBeDefined()
  })

  it('is kept across a restart, and renewed before it expires', async () => {
    await keep(settings())
    const first = await serial()
    await stop()
    await keep(settings())
    clock.advance(59 * DAY)
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(await serial()).toBe(first)
    clock.advance(2 * DAY)
    await expect.poll(serial, POLLING).not.toBe(first)
  })

  it('is replaced when the domain changes', async () => {
    await keep(settings())
    await stop()
    await keep(settings({ domain: 'other.example.com' }))
    expect((await shown()).checkHost('x.other.example.com')).toBeDefined()
  })

  it('is made again where its file is damaged', async () => {
    await writeFile(file, '-----BEGIN CERTIFICATE-----')
    await keep(settings())
    expect((await shown()).checkHost(DOMAIN)).toBeDefined()
  })
})

describe('the operator’s own certificate', () => {
  /** Makes the two files of an operator, from another authority. */
  async function own(domain = DOMAIN) {
    const home = join(dataDir, 'own')
    await runOrThrow('mkdir', ['-p', home], { timeoutMs: 5000 })
    await prepareLocalCa(home, domain, new Date())
    const pem = await issueLocally(home, domain)
    const [keyAt, certAt] = [pem.indexOf('-----BEGIN PRIVATE'), pem.indexOf('-----BEGIN CERT')]
    const [key, cert] =
      keyAt < certAt ? [pem.slice(0, certAt), pem.slice(certAt)] : [pem.slice(keyAt), pem.slice(0, keyAt)]
    const files = { cert: join(home, 'tls.crt'), key: join(home, 'tls.key') }
    await writeFile(files.key, key)
    await writeFile(files.cert, cert)
    return files
  }

  it('is shown, and replaced in the running gateway when its files change', async () => {
    const tlsFiles = await own()
    await keep(settings({ tlsFiles }))
    expect(caFileOf(settings({ tlsFiles }))).toBeNull()
    const gateway = await openCertificates({ file, clock, log: silentLog })
    const followed: string[] = []
    gateway.follow((pem) => followed.push(new X509Certificate(pem).serialNumber))
    expect(followed).toEqual([await serial()])
    await own()
    await looksUntil(
      async () => followed.length,
      (length) => length === 2,
    )
    expect(followed[1]).toBe(new X509Certificate(await readFile(tlsFiles.cert)).serialNumber)
    await gateway.stop()
  })

  it('is kept while the new files do not match each other', async () => {
    const tlsFiles = await own()
    await keep(settings({ tlsFiles }))
    const [first, oldKey] = [await serial(), await readFile(tlsFiles.key)]
    await own()
    const newKey = await readFile(tlsFiles.key)
    await writeFile(tlsFiles.key, oldKey)
    for (let looks = 0; looks < 5; looks += 1) {
      clock.advance(11_000)
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
    expect(await serial()).toBe(first)
    await writeFile(tlsFiles.key, newKey)
    await looksUntil(serial, (now) => now !== first)
  })

  it('refuses to start when key and certificate do not match, and names the settings', async () => {
    const tlsFiles = await own()
    const { key } = await own()
    await writeFile(key, 'no key')
    await expect(keep(settings({ tlsFiles }))).rejects.toThrow(/BERTH_TLS_CERT and BERTH_TLS_KEY/)
  })
})

describe('a wildcard certificate by a DNS challenge', () => {
  let pebble: Pebble
  let config: Settings

  beforeEach(async () => {
    pebble = await startPebble()
    const dnsHook = join(dataDir, 'hook')
    // The hook that an operator writes for their DNS provider. `set-txt` adds to the records that exist.
    const script = `#!/bin/sh
set -eu
echo "$1 $2" >>"${dataDir}/calls"
[ ! -e "${dataDir}/broken" ]
case "$1" in add) to=set-txt ;; remove) to=clear-txt ;; esac
exec curl --silent --fail --data "{\\"host\\":\\"$2.\\",\\"value\\":\\"$3\\"}" "${pebble.dnsUrl}/$to"
`
    await writeFile(dnsHook, script)
    await chmod(dnsHook, 0o755)
    const { directory, caFile } = pebble
    config = settings({ acme: { directory, email: 'ops@example.com', caFile, dnsHook } })
  })
  afterEach(async () => {
    await stop()
    await pebble.close()
  })

  const isFromPebble = ({ issuer }: X509Certificate) => issuer.includes('Pebble')
  const calls = async () =>
    (await readFile(join(dataDir, 'calls'), 'utf8').catch(() => '')).trim().split('\n')

  it('is ordered while the local one fills in, and is valid for the domain and all names below', async () => {
    await prepareCertificate(config, file, clock)
    expect(isFromPebble(await shown())).toBe(false)
    await keep(config)
    await expect.poll(shown, POLLING).toSatisfy(isFromPebble)
    const certificate = await shown()
    expect(certificate.checkHost(DOMAIN)).toBeDefined()
    expect(certificate.checkHost(`x.${DOMAIN}`)).toBeDefined()
    const { uid } = await getAccount('berth-gateway')
    const { uid: owner, mode } = await stat(file)
    expect([owner, mode & 0o777]).toEqual([uid, 0o400])
    expect((await stat(join(dataDir, 'acme', 'account.key'))).mode & 0o777).toBe(0o600)
    const name = `_acme-challenge.${DOMAIN}`
    expect(await calls()).toEqual([`add ${name}`, `add ${name}`, `remove ${name}`, `remove ${name}`])
    expect(caFileOf(config)).toBeNull()
  })

  it('is kept across a restart, and renewed before it expires', async () => {
    await keep(config)
    await expect.poll(shown, POLLING).toSatisfy(isFromPebble)
    const first = await serial()
    await stop()
    await keep(config)
    clock.advance(59 * DAY)
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(await serial()).toBe(first)
    clock.advance(2 * DAY)
    await expect.poll(serial, POLLING).not.toBe(first)
    expect(isFromPebble(await shown())).toBe(true)
    expect(pebble.issued()).toBe(2)
  })

  it('is ordered once more after a pause when the DNS hook fails', async () => {
    await writeFile(join(dataDir, 'broken'), '')
    await keep(config)
    await expect.poll(async () => (await calls()).length, POLLING).toBe(2)
    for (let looks = 0; looks < 5; looks += 1) {
      clock.advance(11_000)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    expect(await calls()).toHaveLength(2)
    expect(isFromPebble(await shown())).toBe(false)
    await rm(join(dataDir, 'broken'))
    clock.advance(5 * MINUTE)
    await expect.poll(shown, POLLING).toSatisfy(isFromPebble)
  })

  it('is replaced by the local one once it has expired and cannot be renewed', async () => {
    await keep(config)
    await expect.poll(shown, POLLING).toSatisfy(isFromPebble)
    await stop()
    await writeFile(join(dataDir, 'broken'), '')
    clock.advance(90 * DAY + HOUR)
    await keep(config)
    expect(isFromPebble(await shown())).toBe(false)
  })

  it('is ordered again when the domain changes', async () => {
    await keep(config)
    await expect.poll(shown, POLLING).toSatisfy(isFromPebble)
    await stop()
    await keep({ ...config, domain: 'other.example.com' })
    await expect.poll(shown, POLLING).toSatisfy(isFromPebble)
    expect((await shown()).checkHost('x.other.example.com')).toBeDefined()
  })
})
