// sudo node bench/far-host.ts [creates] [execs]
//
// What it costs that a unit is on another host: create, exec and wake there, by TLS over a wire to another network namespace,
// beside the same on the server's own host, whose engine is called over its unix socket. Both in turn, with one server.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
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
import { type Caller, callerOf } from './caller.ts'
import { headOf, inTurn, lineOf } from './in-turn.ts'
import { endBerths } from './end-berths.ts'

const [creates = 40, execs = 500] = process.argv.slice(2).map(Number)
const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const isolation = { BERTH_ISOLATION: process.env['BERTH_ISOLATION'] ?? 'runc' }
const settings = { ...isolation, BERTH_HOSTS_ADDRESS: `0.0.0.0:${await freePort('0.0.0.0')}` }
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
