// A host joins: certificates, sockets and TLS are real. What is refused is refused before the token is used.

import { X509Certificate } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { makeKey, signingRequest } from '../../certificates/signed.ts'
import { HOUR } from '../../lib/clock.ts'
import { memberOf, parseIdentity } from '../../lib/fleet-identity.ts'
import { silentLog } from '../../lib/log.ts'
import { openDoor } from './door.ts'
import { joinFleet } from './join.ts'
import { type JoinToken, ownVersion, readToken, writeToken } from './protocol.ts'

let dataDir = ''
let there = ''
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'berth-join-door-'))
  there = await mkdtemp(join(tmpdir(), 'berth-join-host-'))
})
afterAll(async () => {
  await rm(dataDir, { recursive: true })
  await rm(there, { recursive: true })
})

async function open(openMs = HOUR) {
  const at = { host: '127.0.0.1', port: 0 }
  const door = await openDoor({ dataDir, name: 'east', at, log: silentLog, openMs })
  onTestFinished(() => door.close())
  door.joined.catch(() => {})
  return door
}

let files = 0
const newFile = () => join(there, `${(files += 1)}.pem`)

/** What the door answers to this line. */
async function ask(token: JoinToken, changes: Record<string, unknown>): Promise<string> {
  const key = await makeKey()
  const request = signingRequest(['east.server.berth.internal'], key).toString('base64')
  const line = { version: await ownVersion(), secret: token.secret, at: Date.now(), request, ...changes }
  const socket = connect({ host: token.host, port: token.port, rejectUnauthorized: false })
  let text = ''
  for await (const chunk of socket.once('secureConnect', () => socket.write(`${JSON.stringify(line)}\n`)))
    text += String(chunk)
  return text
}

it('a host with a token gets a certificate for its name, and its key is only in its own file', async () => {
  const door = await open()
  const file = newFile()
  await joinFleet(readToken(writeToken(door.token)), file)
  const identity = parseIdentity(await readFile(file, 'utf8'))
  expect(memberOf(new X509Certificate(identity.certificate))).toEqual({ role: 'engine', host: 'east' })
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(await door.joined).toBe('127.0.0.1')
})

it('a token works once, and then nothing listens', async () => {
  const door = await open()
  const [one, other] = await Promise.allSettled([
    joinFleet(door.token, newFile()),
    joinFleet(door.token, newFile()),
  ])
  expect([one.status, other.status].toSorted()).toEqual(['fulfilled', 'rejected'])
  const file = newFile()
  await expect(joinFleet(door.token, file)).rejects.toThrow('is used or too old')
  await expect(stat(file)).rejects.toThrow('ENOENT')
})

it('a token that is too old does nothing, and its command ends with what to do', async () => {
  const door = await open(1)
  await expect(door.joined).rejects.toThrow('make another token')
  await expect(joinFleet(door.token, newFile())).rejects.toThrow('is used or too old')
})

it.each([
  ['another secret', { secret: 'x'.repeat(43) }, 'is not the one that this door was opened for'],
  ['another version', { version: '0.0.0-old' }, 'it runs Berth 0.0.0-old and the server'],
  ['a clock minutes apart', { at: Date.now() - 120_000 }, 'the clocks are 1'],
  ['no signing request', { request: 'AAAA' }, 'its signing request is not in order'],
  ['a field that is not known', { role: 'server' }, 'something else'],
])('%s is refused with a sentence, and leaves the token as it was', async (_what, changes, words) => {
  const door = await open()
  expect(await ask(door.token, changes)).toContain(words)
  await joinFleet(door.token, newFile())
})

it('names in a signing request do not count: the door signs for an engine of the name that the operator gave', async () => {
  const door = await open()
  const { certificates } = JSON.parse(await ask(door.token, {})) as { certificates: string }
  const certificate = new X509Certificate(certificates)
  expect(certificate.subjectAltName).toBe('DNS:east.engine.berth.internal')
  expect(certificate.subject).toBe('O=Berth')
})

it('the door closes after twenty connections with a wrong token', async () => {
  const door = await open()
  for (let tries = 0; tries < 20; tries += 1) await ask(door.token, { secret: 'wrong' })
  await expect(door.joined).rejects.toThrow('had a wrong token')
})

it('a line that does not end is not read on, and others are served meanwhile', async () => {
  const door = await open()
  const socket = connect({ host: door.token.host, port: door.token.port, rejectUnauthorized: false })
  socket.on('error', () => {})
  socket.resume()
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.write('x'.repeat(100_000))
  await closed
  await joinFleet(door.token, newFile())
})

it('a host tells nothing to a machine whose certificate is another one, and keeps a file that is there', async () => {
  const [door, other] = [await open(), await open()]
  const mixed = { ...door.token, port: other.token.port }
  await expect(joinFleet(mixed, newFile())).rejects.toThrow('another machine answers there')
  const file = newFile()
  await writeFile(file, 'in use')
  await expect(joinFleet(door.token, file)).rejects.toThrow('is there already')
  expect(await readFile(file, 'utf8')).toBe('in use')
  await expect(joinFleet(door.token, join(there, 'none', 'a.pem'))).rejects.toThrow(
    'cannot be written (ENOENT)',
  )
  await joinFleet(door.token, newFile())
})

it('no key of a host is ever on the machine of the server', async () => {
  expect((await readdir(join(dataDir, 'fleet'))).toSorted()).toEqual(['ca.crt', 'ca.key', 'openssl.cnf'])
})

it.each([
  ['an address of another machine', () => ({ host: '192.0.2.1', port: 7076 }), 'EADDRNOTAVAIL'],
  ['a port in use', (port: number) => ({ host: '127.0.0.1', port }), 'EADDRINUSE'],
])('the door does not open at %s, and says what to name instead', async (_what, at, code) => {
  const { token } = await open()
  const opened = openDoor({ dataDir, name: 'west', at: at(token.port), log: silentLog })
  await expect(opened).rejects.toThrow(`(${code}): name an address of its own and a free port`)
})
