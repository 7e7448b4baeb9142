// A Berth of two servers and several hosts, each in a network namespace of its own on one switch, as machines in one network. What
// callers and visitors use is on this machine: a balancer before the servers, and one before the gateways of the hosts.

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { freePort } from '../../src/lib/free-port.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import {
  type Answer,
  Berth,
  type DataDir,
  eventually,
  makeDataDir,
  nameDataDir,
  type Settings,
} from './berth.ts'
import { destroyAll, type Service } from './berth-units.ts'
import { clearAfterwards } from './clear-afterwards.ts'
import { withDatabaseAt } from './host-invariants.ts'
import { joinAs, type Machine, useMachine } from './host-lab.ts'
import { makeTeam } from './make.ts'
import type { OwnPostgres } from './own-postgres.ts'
import type { Trust } from './database-clients.ts'
import { nameWire } from './wire.ts'

const HOST = '127.0.0.1'
/** Ports of the hosts, which have them to themselves. The same numbers are the balancers'. */
const ENGINE = 7075
const DOOR = 7079
const CONNECT_MS = 1000
const FILES = ['roles/server/secret.key', 'fleet/ca.key', 'fleet/ca.crt', 'fleet/hosts.json']

const ip = async (...args: string[]) => void (await runOrThrow('ip', args, { timeoutMs: 20_000 }))

export type LabServer = { network: string; address: string; berth: Berth; settings: Settings }
export type LabHost = Machine & { unplug: (isOut: boolean) => Promise<void> }

export type FleetLab = {
  servers: [LabServer, LabServer]
  hosts: LabHost[]
  trust: () => Trust
  /** Whose gateway visitors come to; the first host's in the beginning. */
  visitAt: (host: LabHost) => void
  /** Calls of a new team, by whichever server answers, or by one alone. */
  newTeam: () => Promise<Service>
  through: (server: LabServer, team: Service) => Service
  leader: () => Promise<LabServer>
  /** Neither of both reaches the other, or both do again. */
  part: (isParted: boolean) => Promise<void>
}

/** For the tests of the file. `settings`: of each host, beside what places it. */
export function useFleetLab(
  postgres: OwnPostgres,
  { names, settings, images }: { names: string[]; settings: Settings; images: string[] },
): FleetLab {
  // Of the addresses for measurements: those for documentation are this machine's own in some places, and other wires'.
  const bridge = `lab${randomBytes(2).toString('hex')}b`
  const addressOf = (index: number) => `198.18.77.${10 + index}`
  const ports = { api: 0, link: 0, tls: 0, mysql: 0 }
  const servers = [0, 1].map((index) => newServer(52 + index, addressOf(index))) as [LabServer, LabServer]
  const hosts = names.map((name, index) => {
    const machine = useMachine(name, 54 + index, settings, index === 0 ? images : [])
    const unplug = async (isOut: boolean) => {
      await machine.setWire(isOut ? 'down' : 'up')
      await ip('-n', basename(machine.network), 'link', 'set', 'eth1', isOut ? 'down' : 'up')
    }
    return { ...machine, unplug }
  })
  const teams = new Map<Service, { key: string; isAlias: boolean }>()
  const balancers: Server[] = []
  let certificates = ''
  let trust: Trust
  let visited = 0

  beforeAll(async () => {
    for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort('0.0.0.0')
    certificates = await mkdtemp(join(tmpdir(), 'berth-lab-'))
    trust = await makeWildcard(certificates)
    await ip('link', 'add', bridge, 'type', 'bridge')
    await ip('address', 'add', '198.18.77.1/24', 'dev', bridge)
    await ip('link', 'set', bridge, 'up')
    for (const [index, { network }] of [...servers, ...hosts].entries())
      await plug(basename(network), bridge, index, addressOf(index))
    for (const [index, { settings: own }] of hosts.entries())
      Object.assign(own, {
        BERTH_ENGINE_TLS: `0.0.0.0:${ENGINE}`,
        BERTH_ENGINE_ADDRESS: `${addressOf(2 + index)}:${ENGINE}`,
        BERTH_GATEWAY_HANDOVER: `${addressOf(2 + index)}:${DOOR}`,
        BERTH_GATEWAY_TLS: `0.0.0.0:${ports.tls}`,
        BERTH_GATEWAY_MYSQL: `0.0.0.0:${ports.mysql}`,
        BERTH_TLS_CERT: join(certificates, 'tls.crt'),
        BERTH_TLS_KEY: join(certificates, 'tls.key'),
      })
    const toServers = (port: number) => () => servers.map(({ address: host }) => ({ host, port }))
    const toHost = (port: number) => () => [{ host: addressOf(2 + visited), port }]
    for (const [host, port, targets] of [
      [HOST, ports.api, toServers(ports.api)],
      ['0.0.0.0', ports.link, toServers(ports.link)],
      [HOST, ports.tls, toHost(ports.tls)],
      [HOST, ports.mysql, toHost(ports.mysql)],
    ] as const)
      balancers.push(await balance({ host, port }, targets))
    await startServers()
    for (const host of hosts) await joinAs(servers[0].berth, servers[0].settings, host)
    for (const file of FILES) await copyToSecond(file)
    await servers[1].berth.start(servers[1].settings)
  }, 900_000)
  afterAll(async () => {
    try {
      for (const [service, { isAlias }] of teams) if (!isAlias) await destroyAll(service)
    } finally {
      for (const each of balancers) each.close()
      await ip('link', 'delete', bridge)
      await rm(certificates, { recursive: true })
    }
  })

  async function startServers(): Promise<void> {
    for (const { settings: own, address } of servers)
      Object.assign(own, {
        DATABASE_URL: postgres.url(),
        BERTH_API_ADDRESS: `0.0.0.0:${ports.api}`,
        BERTH_PUBLIC_URL: `http://${HOST}:${ports.api}`,
        BERTH_API_HOSTS: servers.map((each) => each.address).join(','),
        BERTH_HOSTS_ADDRESS: `0.0.0.0:${ports.link}`,
        BERTH_SERVER_ADDRESS: `${address}:${ports.link}`,
      })
    await servers[0].berth.start(servers[0].settings)
    await leader()
  }

  async function copyToSecond(file: string): Promise<void> {
    const [from, to] = servers.map(({ berth }) => join(berth.dataDir, file)) as [string, string]
    await mkdir(dirname(to), { recursive: true })
    await copyFile(from, to)
  }

  const leader = async () =>
    await eventually(async () => {
      const [row] = await postgres.ask<{ holder: string | null }>('select holder from leaders')
      const found = servers.find(({ address }) => row?.holder?.endsWith(` ${address}:${ports.link}`))
      if (!found) throw new Error('no server leads')
      return found
    }, 30_000)

  const serviceOf = (key: string, host: string): Service => {
    const service = { call: callsOf(key, `http://${host}:${ports.api}`) }
    teams.set(service, { key, isAlias: host !== HOST })
    return service
  }
  return {
    servers,
    hosts,
    trust: () => trust,
    visitAt: (host) => (visited = names.indexOf(host.name)),
    newTeam: async () => {
      const made = await withDatabaseAt(
        postgres.url(),
        async (db) => await makeTeam({ app: { db, clock: systemClock } }),
      )
      return serviceOf(made.key, HOST)
    },
    through: ({ address }, team) => serviceOf(teams.get(team)?.key ?? '', address),
    leader,
    part: async (isParted) => {
      for (const [index, { network }] of servers.entries()) {
        const other = `${addressOf(1 - index)}/32`
        await ip('-n', basename(network), 'route', isParted ? 'add' : 'delete', 'blackhole', other)
      }
    },
  }
}

function newServer(index: number, address: string): LabServer {
  const wire = nameWire(index)
  const path = nameDataDir()
  const berth = new Berth(path, undefined, wire.network)
  let data: DataDir
  clearAfterwards(path, wire.network)
  beforeAll(async () => {
    data = await makeDataDir(path, { isEmpty: true })
    await wire.open()
  })
  afterAll(async () => {
    if (berth.wasStarted && !berth.hasEnded) expect(await berth.pressCtrlC()).toBe(0)
    await data.remove()
    await wire.close()
  })
  return { network: wire.network, address, berth, settings: { BERTH_ROLE: 'server' } }
}

async function plug(namespace: string, bridge: string, index: number, address: string): Promise<void> {
  const link = `${bridge}${index}`
  await ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth1', 'netns', namespace)
  await ip('link', 'set', link, 'master', bridge, 'up')
  await ip('-n', namespace, 'address', 'add', `${address}/24`, 'dev', 'eth1')
  await ip('-n', namespace, 'link', 'set', 'eth1', 'up')
}

/** For all names of units, and its own authority. */
async function makeWildcard(directory: string): Promise<Trust> {
  const openssl = async (...args: string[]) =>
    await runOrThrow('openssl', ['req', '-x509', '-days', '2', '-nodes', ...args], {
      cwd: directory,
      timeoutMs: 20_000,
    })
  const key = (name: string) => ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-keyout', name]
  await openssl(...key('ca.key'), '-subj', '/CN=lab', '-out', 'ca.crt')
  const names = ['-addext', 'subjectAltName=DNS:berth.localhost,DNS:*.berth.localhost']
  const signed = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-addext', 'basicConstraints=critical,CA:FALSE']
  await openssl(...key('tls.key'), '-subj', '/CN=units', '-out', 'tls.crt', ...signed, ...names)
  const caFile = join(directory, 'ca.crt')
  return { caFile, ca: await readFile(caFile, 'utf8') }
}

/** As one of TCP before machines, which takes the next one where nobody listens. */
async function balance(
  at: { host: string; port: number },
  targets: () => { host: string; port: number }[],
): Promise<Server> {
  const pass = async (socket: Socket): Promise<void> => {
    socket.on('error', () => {})
    for (const target of targets()) {
      const to = connect(target)
      to.on('error', () => {})
      if (!(await isConnected(to))) continue
      socket.pipe(to).pipe(socket)
      for (const [one, other] of [
        [socket, to],
        [to, socket],
      ] as const)
        one.once('close', () => other.destroy())
      return
    }
    socket.destroy()
  }
  const server = createServer((socket) => void pass(socket)).listen(at.port, at.host)
  await once(server, 'listening')
  return server
}

async function isConnected(socket: Socket): Promise<boolean> {
  const tooLong = setTimeout(() => socket.destroy(), CONNECT_MS)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  socket.once('connect', () => resolve(true)).once('close', () => resolve(false))
  return await promise.finally(() => clearTimeout(tooLong))
}

const callsOf =
  (key: string, url: string) =>
  async <T>(method: string, path: string, body?: unknown): Promise<Answer<T>> => {
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...type },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(300_000),
    })
    return { status: response.status, body: (await response.json()) as T }
  }
