// sudo node bench/far-host.ts [creates] [execs] [visits]
//
// What it costs that a unit is on another host: create, exec and wake there, by TLS over a wire to another network namespace,
// beside the same on the server's own host, whose engine is called over its unix socket. Both in turn, with one server. Then what
// it costs that a visit comes to the gateway of another host than its unit's: beside visits to the gateway of that host.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { systemClock } from '../src/lib/clock.ts'
import { freePort } from '../src/lib/free-port.ts'
import { silentLog } from '../src/lib/log.ts'
import { openDatabase } from '../src/store/db.ts'
import { postgresSocketDir, runDirOf } from '../src/supervisor/instance.ts'
import { postgresUrl } from '../src/supervisor/postgres.ts'
import { baseEnvironment, Berth, makeDataDir } from '../test/support/berth.ts'
import { makeTeam } from '../test/support/make.ts'
import { nameWire } from '../test/support/wire.ts'
import { type Caller, callerOf, SMALL_SERVER } from './caller.ts'
import { headOf, inTurn, lineOf, timed } from './in-turn.ts'
import { endBerths } from './end-berths.ts'

const [creates = 40, execs = 500, visits = 1000] = process.argv.slice(2).map(Number)
const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const isolation = { BERTH_ISOLATION: process.env['BERTH_ISOLATION'] ?? 'runc' }
const ports = {
  hosts: await freePort('0.0.0.0'),
  tls: await freePort('0.0.0.0'),
  door: await freePort('0.0.0.0'),
}
/** The same ports on both, as behind one name. */
const gateways = {
  BERTH_GATEWAY_TLS: `0.0.0.0:${ports.tls}`,
  BERTH_GATEWAY_HANDOVER: `0.0.0.0:${ports.door}`,
}
const settings = { ...isolation, ...gateways, BERTH_HOSTS_ADDRESS: `0.0.0.0:${ports.hosts}` }
const wire = nameWire(50)
const [ownData, farData] = [await makeDataDir(), await makeDataDir()]
const own = new Berth(ownData.path)
const far = new Berth(farData.path, undefined, wire.network)
const callers: Caller[] = []

await wire.open()
try {
  await own.start(settings)
  await join()
  await measure()
} finally {
  await endBerths(callers, [
    { berth: far, data: farData },
    { berth: own, data: ownData },
  ])
  await wire.close()
}

async function measure(): Promise<void> {
  const name = /^(\S+) .*this machine/m.exec(await hosts('list'))?.[1] ?? ''
  const [here, there] = [await callerOn('far'), await callerOn(name)]
  console.log(headOf('own', 'far'))
  const create = { one: here.timeCreate, other: there.timeCreate }
  console.log(lineOf(`create (${creates})`, await inTurn(creates, create)))
  const [near, away] = [(await here.create()).units[0].id, (await there.create()).units[0].id]
  const exec = { one: () => here.timeExec(near), other: () => there.timeExec(away) }
  console.log(lineOf(`exec (${execs})`, await inTurn(execs, exec)))
  const wake = { one: () => here.timeWake(near), other: () => there.timeWake(away) }
  console.log(lineOf(`wake (${creates})`, await inTurn(creates, wake)))
  await measureVisits(await there.createServer(SMALL_SERVER))
}

/** Of a unit of the far host, at its own gateway and at the server's. */
async function measureVisits(url: URL): Promise<void> {
  const { port, hostname } = url
  const visit = async (host: string, agent: Agent | false) => {
    const to = {
      host,
      port,
      agent,
      servername: hostname,
      headers: { host: url.host },
      rejectUnauthorized: false,
    }
    const asked = request(to).end()
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    await text(answer)
    return answer.statusCode
  }
  const kept = new Agent({ keepAlive: true })
  while ((await visit(wire.address, kept)) !== 200 || (await visit('127.0.0.1', kept)) !== 200)
    await delay(200)
  console.log(headOf('its own', 'another'))
  for (const [what, agent] of [
    ['kept connection', kept],
    ['new connection', false],
  ] as const) {
    const sides = {
      one: async () => await timed(async () => await visit(wire.address, agent)),
      other: async () => await timed(async () => await visit('127.0.0.1', agent)),
    }
    console.log(lineOf(`visit, ${what} (${visits})`, await inTurn(visits, sides)))
  }
  kept.destroy()
}

/** Of a new team, whose first unit keeps it on the host that takes units while the other one, which is named, is drained. */
async function callerOn(drained: string) {
  await hosts('drain', drained)
  await delay(5000)
  const db = openDatabase(postgresUrl(postgresSocketDir(runDirOf(await own.instance())), 'berth'), silentLog)
  const { key } = await makeTeam({ app: { db, clock: systemClock } })
  await db.destroy()
  const caller = callerOf({ baseUrl: own.credentials.baseUrl, key })
  callers.push(caller)
  const host = (await caller.create()).units[0].host?.id
  await hosts('undrain', drained)
  await delay(5000)
  console.log(`a team on the host ${host}, while ${drained} was drained`)
  return caller
}

async function hosts(...args: string[]): Promise<string> {
  const env = baseEnvironment(own.dataDir, settings)
  return (await promisify(execFile)(process.execPath, [main, 'hosts', ...args], { env })).stdout
}

async function join(): Promise<void> {
  const env = baseEnvironment(own.dataDir, settings)
  const args = [main, 'hosts', 'join-token', 'far', `${wire.near}:0`]
  const door = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const engine = {
    BERTH_ROLE: 'host',
    BERTH_ENGINE_TLS: `0.0.0.0:${await freePort('127.0.0.1')}`,
    ...isolation,
    ...gateways,
  }
  const closed = once(door, 'close')
  try {
    for await (const line of createInterface({ input: door.stdout })) {
      const token = /BERTH_JOIN=(berth-join-[\w-]+)/.exec(line)?.[1]
      if (token !== undefined) await far.start({ ...engine, BERTH_JOIN: token })
    }
    await closed
  } finally {
    door.kill()
  }
  while (!/^far +ready /m.test(await hosts('list'))) await delay(1000)
}
