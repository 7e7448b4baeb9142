// Machines with brokered secrets (decisions/brokered-secrets.md) in real containers: what they trust, what they hold, and
// that it goes on over suspensions, copies and a restart of the engine. The egress process is this one; the host of the
// secret is here too.

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { makeKey, toPem } from '../../src/certificates/signed.ts'
import { authorityCertificate, hostCertificate } from '../../src/certificates/team-authority.ts'
import { type Egress, startEgress } from '../../src/egress/egress.ts'
import type { BrokeredSecret } from '../../src/engine/egress.ts'
import {
  type IsolationClass,
  isolationClasses,
  type MachineRef,
  type RunSpec,
} from '../../src/engine/engine.ts'
import { namesOf } from '../../src/engine/oci/network/names.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { bundleVariables } from '../../src/lib/egress/trust.ts'
import { silentLog } from '../../src/lib/log.ts'
import { run } from '../../src/lib/process.ts'
import { EGRESS_PORTS } from '../../src/processes/channel.ts'
import { hasCriu } from '../support/criu.ts'
import { openHostEngine } from './host-engine.ts'

const IMAGE = 'berth.local/python:3.11'
const HOST = 'api.example.com'
const ADDRESS = '127.66.0.1'
const secret: BrokeredSecret = {
  name: 'KEY',
  placeholder: 'berth_secret_0123456789abcdef',
  value: 'sk-the-real-one-of-this-test',
  hosts: [HOST],
}

/** Counts in memory how often it was asked. */
const COUNTING = `
import http.server, socketserver
class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Handler.asked += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(Handler.asked).encode())
socketserver.TCPServer.allow_reuse_address = True
socketserver.TCPServer(("", 8000), Handler).serve_forever()
`
/** By whatever the machine trusts; the address is any public one. */
const ASK = `
import os, socket, ssl
plain = socket.create_connection(("203.0.113.10", 443), timeout=10)
secure = ssl.create_default_context().wrap_socket(plain, server_hostname="${HOST}")
secure.sendall(("GET / HTTP/1.1\\r\\nHost: ${HOST}\\r\\nConnection: close\\r\\nX-Key: " + os.environ["KEY"] + "\\r\\n\\r\\n").encode())
print(secure.recv(10000).decode().split("\\r\\n")[0])
`

const size = { cpus: 1, memoryMb: 256, pids: 128, diskGb: 1 }

let host: Awaited<ReturnType<typeof openHostEngine>>
let egress: Egress
let server: Server
let directory: string
let imageDigest: string
let made = 0
const seen: string[] = []

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'secrets-'))
  const root = { name: 'Test root', key: await makeKey() }
  const key = await makeKey()
  const now = new Date()
  const cert = hostCertificate(HOST, key, root, now)
  server = createServer({ key: toPem(key), cert }, (request, response) => {
    seen.push(String(request.headers['x-key']))
    response.end('hello')
  }).listen(443, ADDRESS)
  const sockets = {
    rules: { path: join(directory, 'rules'), gid: 0 },
    names: { path: join(directory, 'names'), gid: 0 },
  }
  host = await openHostEngine({ egress: { ports: EGRESS_PORTS, gid: null, sockets, onNeeded: () => {} } })
  egress = await startEgress({
    address: namesOf(host.instance).gateway,
    ports: EGRESS_PORTS,
    socketPath: sockets.rules.path,
    resolve: async () => ({ kind: 'addresses', addresses: [ADDRESS] }),
    stateDir: join(directory, 'authorities'),
    roots: async () => authorityCertificate(root.name, { key: root.key, now }),
    log: silentLog,
    clock: systemClock,
  })
  imageDigest = (await host.engine().pull(IMAGE)).digest
}, 300_000)
afterAll(async () => {
  await egress?.close()
  server?.closeAllConnections()
  server?.close()
  await host?.close()
  await rm(directory, { recursive: true })
}, 120_000)
beforeEach(() => {
  seen.length = 0
})

const runWith = (...secrets: BrokeredSecret[]): RunSpec => ({
  hostname: 'unit',
  entrypoint: ['python3', '-u', '-c', COUNTING],
  cmd: [],
  env: { KEY: secret.placeholder },
  files: [],
  searchDomain: 'stack.internal',
  egress: { mode: 'listed', allow: [HOST], siblings: 'none', stack: null, secrets },
})

async function started(isolation: IsolationClass, ...secrets: BrokeredSecret[]): Promise<MachineRef> {
  const id = `unit_secret${(made += 1)}`
  await host.engine().create({ id, imageDigest, isolation, size, volume: null, networkGroup: 1 })
  const ref = { id, generation: 1 }
  await host.engine().start(ref, runWith(...secrets))
  return ref
}

async function said(ref: MachineRef, ...argv: string[]): Promise<string> {
  let text = ''
  const request = { argv, stdin: null, timeoutMs: 30_000 }
  await host.engine().exec(ref, request, ({ data }) => void (text += data.toString()))
  return text
}

const ask = async (ref: MachineRef) => await said(ref, 'python3', '-c', ASK)
const counted = async (ref: MachineRef) =>
  await said(
    ref,
    'python3',
    '-c',
    'import urllib.request as r; print(r.urlopen("http://127.0.0.1:8000").read().decode())',
  )

/** Files of the installation that have the value: none, whatever is saved. */
async function filesWithValue(): Promise<string> {
  return (await run('grep', ['-rlF', secret.value, host.options.dataDir], { timeoutMs: 60_000 })).stdout
}

describe.each(isolationClasses)('a machine of class %s with a secret', (isolation) => {
  it('reaches the host of it by what it trusts, and holds the placeholder alone', async () => {
    const ref = await started(isolation, secret)
    expect(await ask(ref)).toBe('HTTP/1.1 200 OK\n')
    expect(seen).toEqual([secret.value])

    const environment = await said(ref, 'env')
    for (const name of bundleVariables) expect(environment).toContain(`${name}=/run/berth/trust.pem\n`)
    expect(environment).toContain(`KEY=${secret.placeholder}\n`)
    expect(environment).not.toContain(secret.value)
    const authority = await readFile(join(directory, 'authorities', '1', 'ca.crt'), 'utf8')
    const bundle = '/etc/ssl/certs/ca-certificates.crt'
    const system = await said(ref, 'cat', bundle)
    expect(system).toContain(authority)
    expect(system.length).toBeGreaterThan(100_000)
    expect(await said(ref, 'sh', '-c', `echo x > ${bundle}`)).toMatch(/[Rr]ead-only/)
    expect(await filesWithValue()).toBe('')

    await host.engine().stop(ref, 0)
    const next = { ...ref, generation: 2 }
    await host.engine().start(next, runWith())
    expect(await said(next, 'cat', bundle)).not.toContain(authority)
    expect(await said(next, 'env')).not.toContain('trust.pem')
    await host.engine().destroy(ref.id)
  })

  it('goes on over a restart of the engine, and with another value at once', async () => {
    const ref = await started(isolation, secret)
    await host.reopen()
    await expect.poll(async () => await ask(ref), { timeout: 20_000 }).toBe('HTTP/1.1 200 OK\n')
    expect(seen.at(-1)).toBe(secret.value)
    await host.engine().restrict(ref, runWith({ ...secret, value: 'sk-rotated' }).egress)
    await ask(ref)
    expect(seen.at(-1)).toBe('sk-rotated')
    expect(await filesWithValue()).toBe('')
    await host.engine().destroy(ref.id)
  })
})

describe.skipIf(!hasCriu)('the memory of a machine with a secret', () => {
  it('is resumed, and copied, with what it trusts and without the value', async () => {
    const ref = await started('runc', secret)
    // Its program may not listen yet.
    await expect.poll(() => counted(ref)).toBe('1\n')
    expect(await host.engine().suspend(ref, 0)).toBe(true)
    expect(await filesWithValue()).toBe('')
    const next = { ...ref, generation: 2 }
    expect(await host.engine().start(next, runWith(secret))).toMatchObject({ resumed: true })
    expect(await counted(next)).toBe('2\n')
    expect(await ask(next)).toBe('HTTP/1.1 200 OK\n')

    const copy = { id: `${ref.id}copy`, generation: 1 }
    const spec = { id: copy.id, source: next, networkGroup: 1, run: runWith(secret) }
    expect((await host.engine().fork([spec]))[0]?.copied).toBe('memory')
    expect(await host.engine().start(copy, runWith(secret))).toMatchObject({ resumed: true })
    expect(await counted(copy)).toBe('3\n')
    expect(await ask(copy)).toBe('HTTP/1.1 200 OK\n')
    expect(seen).toEqual([secret.value, secret.value])
    expect(await filesWithValue()).toBe('')

    await host.engine().restrict(copy, runWith().egress)
    expect(await ask(copy)).not.toContain('200 OK')
    for (const { id } of [ref, copy]) await host.engine().destroy(id)
  })
})

it('the first machine with a secret of a team does not start while no process puts it into requests', async () => {
  await egress.close()
  const spec = {
    id: 'unit_early',
    imageDigest,
    isolation: 'runc',
    size,
    volume: null,
    networkGroup: 2,
  } as const
  await host.engine().create(spec)
  const start = host.engine().start({ id: spec.id, generation: 1 }, runWith(secret))
  await expect(start).rejects.toThrow('no egress process')
  await host.engine().destroy(spec.id)
})
