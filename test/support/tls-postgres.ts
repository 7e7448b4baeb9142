// A Postgres as operators have it: by TCP and TLS alone, with a password, a login that is no superuser, and a standby that gets each
// commit before it is answered. Berth's own, or with BERTH_TEST_POSTGRES the programs of that directory, of another version.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { freePort } from '../../src/lib/free-port.ts'
import { runOrThrow, SAFE_PATH } from '../../src/lib/process.ts'
import { getAccount } from '../../src/lib/system-users.ts'
import { installProgram } from '../../src/supervisor/postgres/program.ts'
import { eventually } from './berth.ts'

const HOST = '127.0.0.1'
const PASSWORD = 'of the operator'
const TIMEOUT_MS = 60_000
const confined = ['--reuid=berth-postgres', '--regid=berth-postgres', '--clear-groups', '--pdeathsig', 'KILL']
const NAMES = ['first', 'second'] as const
type Name = (typeof NAMES)[number]

export type TlsPostgres = {
  url: () => string
  ask: <Row extends pg.QueryResultRow>(text: string) => Promise<Row[]>
  start: () => Promise<void>
  stop: () => Promise<void>
  /** The one that answers is killed, and the standby is promoted in its place, at the same address. */
  failOver: () => Promise<void>
}

/** For the tests of the file that it is called in. */
export function useTlsPostgres(): TlsPostgres {
  let opened: Awaited<ReturnType<typeof openTlsPostgres>>
  beforeAll(async () => {
    opened = await openTlsPostgres()
  })
  afterAll(async () => await opened?.remove())
  return {
    url: () => opened.url(),
    ask: async (text) => await opened.ask(text),
    start: async () => await opened.start(),
    stop: async () => await opened.stop(),
    failOver: async () => await opened.failOver(),
  }
}

async function openTlsPostgres(): Promise<TlsPostgres & { remove: () => Promise<void> }> {
  const directory = await mkdtemp('/run/berth-test-')
  await chmod(directory, 0o711)
  const program = process.env['BERTH_TEST_POSTGRES'] ?? join(await installProgram(directory), 'bin')
  const { uid, gid } = await getAccount('berth-postgres')
  const ports = { first: await freePort(HOST), second: await freePort(HOST) }
  const running = new Map<Name, ChildProcess>()
  const at = (name: string) => join(directory, name)
  let answering: Name = 'first'
  const relay = await openRelay(() => ports[answering])

  const asOwner = async (path: string) => {
    await mkdir(path, { mode: 0o700 })
    await chown(path, uid, gid)
  }
  const ask = async <Row extends pg.QueryResultRow>(connectionString: string, text: string) => {
    const client = new pg.Client({ connectionString })
    await client.connect()
    try {
      return (await client.query<Row>(text)).rows
    } finally {
      await client.end()
    }
  }
  /** Of the operator of the database, on the machine of one of both. */
  const inside = (name: Name) => `postgres://postgres@/postgres?host=${at('sockets')}&port=${ports[name]}`
  const startOne = async (name: Name, settings: Record<string, string> = {}) => {
    const all = {
      listen_addresses: HOST,
      port: String(ports[name]),
      unix_socket_directories: at('sockets'),
      hba_file: at('hba.conf'),
      ssl: 'on',
      ssl_cert_file: at('server.crt'),
      ssl_key_file: at('server.key'),
      ...settings,
    }
    const flags = Object.entries(all).flatMap(([setting, value]) => ['-c', `${setting}=${value}`])
    const args = [...confined, join(program, 'postgres'), '-D', at(name), ...flags]
    const child = spawn('setpriv', args, {
      cwd: '/',
      env: { PATH: SAFE_PATH, LC_ALL: 'C.UTF-8' },
      stdio: 'ignore',
    })
    running.set(name, child)
    await eventually(async () => await ask(inside(name), 'select 1'), TIMEOUT_MS)
  }
  const stopOne = async (name: Name, signal: 'SIGINT' | 'SIGQUIT') => {
    const child = running.get(name)
    running.delete(name)
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }
  const toStandby = {
    primary_conninfo: `host=${at('sockets')} port=${ports.first} user=postgres application_name=standby`,
  }
  const startBoth = async () => {
    await startOne('first', { synchronous_standby_names: 'standby' })
    await startOne('second', toStandby)
  }

  await asOwner(at('sockets'))
  await chmod(at('sockets'), 0o711)
  await asOwner(at('first'))
  await makeCertificates(directory)
  await chown(at('server.key'), uid, gid)
  await writeFile(
    at('hba.conf'),
    [
      'local all all trust',
      'local replication all trust',
      'hostssl all all 127.0.0.1/32 scram-sha-256',
      '',
    ].join('\n'),
  )
  const init = ['-D', at('first'), '-U', 'postgres', '--encoding=UTF8', '--locale=C.UTF-8', '--auth=trust']
  await runOrThrow('setpriv', [...confined, join(program, 'initdb'), ...init], { timeoutMs: TIMEOUT_MS })
  await startOne('first')
  await ask(inside('first'), `create role berth login password '${PASSWORD}'`)
  await ask(inside('first'), 'create database berth owner berth')
  await stopOne('first', 'SIGINT')
  await cp(at('first'), at('second'), { recursive: true, preserveTimestamps: true })
  await writeFile(join(at('second'), 'standby.signal'), '')
  await runOrThrow('chown', ['-R', `${uid}:${gid}`, at('second')], { timeoutMs: TIMEOUT_MS })
  await startBoth()

  const secret = encodeURIComponent(PASSWORD)
  const trust = `sslmode=verify-full&sslrootcert=${at('ca.crt')}`
  const url = () => `postgres://berth:${secret}@localhost:${relay.port}/berth?${trust}`
  return {
    url,
    ask: async (text) => await ask(url(), text),
    start: startBoth,
    stop: async () => {
      for (const name of NAMES) await stopOne(name, 'SIGINT')
    },
    failOver: async () => {
      await stopOne('first', 'SIGQUIT')
      relay.cut()
      await ask(inside('second'), 'select pg_promote()')
      answering = 'second'
    },
    remove: async () => {
      relay.close()
      for (const name of NAMES) await stopOne(name, 'SIGQUIT')
      await rm(directory, { recursive: true })
    },
  }
}

/** Of an authority, and of `localhost`. */
async function makeCertificates(directory: string): Promise<void> {
  const openssl = async (...args: string[]) => {
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256']
    await runOrThrow('openssl', ['req', '-x509', '-days', '2', '-nodes', ...key, ...args], {
      cwd: directory,
      timeoutMs: TIMEOUT_MS,
    })
  }
  await openssl('-keyout', 'ca.key', '-subj', '/CN=operator', '-out', 'ca.crt')
  const signed = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-addext', 'basicConstraints=critical,CA:FALSE']
  const names = ['-addext', 'subjectAltName=DNS:localhost']
  await openssl('-keyout', 'server.key', '-subj', '/CN=database', '-out', 'server.crt', ...signed, ...names)
  // What uses it is not root.
  await chmod(join(directory, 'ca.crt'), 0o644)
}

/** The address of the service, behind which the server changes. */
async function openRelay(target: () => number) {
  const sockets = new Set<Socket>()
  const relay = createServer((incoming) => {
    const passed = connect(target(), HOST)
    for (const [one, other] of [
      [incoming, passed],
      [passed, incoming],
    ] as const) {
      sockets.add(one)
      one.on('error', () => {})
      one.once('close', () => sockets.delete(one) && other.destroy())
      one.pipe(other)
    }
  })
  relay.listen(0, HOST)
  await once(relay, 'listening')
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    port: (relay.address() as AddressInfo).port,
    cut,
    close: () => {
      cut()
      relay.close()
    },
  }
}
