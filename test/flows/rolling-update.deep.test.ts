// A rolling update under load: two servers are replaced one after the other and then the process of a host, while callers of the
// TypeScript SDK go on. None of ten thousand calls fails, and each unit is in the run that it was in. The servers are real
// processes on a real Postgres; the host's engine is in memory behind its real listener, so that no unit is needed.

import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { Berth as Client, type Unit } from '../../packages/sdk/src/index.ts'
import { eventually } from '../support/berth.ts'
import { useOwnPostgres } from '../support/own-postgres.ts'
import { type OneServer, useServerPair } from '../support/server-pair.ts'

const CALLS = 10_000
const CALLERS = 8
/** As a host takes from its end until its engine listens again. */
const HOST_AWAY_MS = 4000
const LONG_MS = 1_500_000

const postgres = useOwnPostgres()
const pair = useServerPair(postgres, () => postgres.url())

const nano = { image: 'berth.local/debian:12', size: 'nano', sleep: 'never' } as const

const stands = async (server: OneServer) =>
  await eventually(
    async () => expect(await server.health()).toMatchObject({ leads: false, status: 'ok' }),
    60_000,
  )

/** What an agent does with a unit of its own, and one create and destroy in a hundred calls. */
function startCallers(client: Client, units: Unit[]) {
  const failed: string[] = []
  let [count, isEnding] = [0, false]
  const counted = async (what: string, call: () => Promise<unknown>) => {
    await call().catch((error: unknown) => failed.push(`${what}: ${String(error)}`))
    count += 1
  }
  const work = async (unit: Unit, caller: number) => {
    for (let round = 0; !isEnding; round += 1) {
      const text = `round ${round}\n`
      await counted('exec', async () => expect((await unit.exec(['echo', 'on'])).stdout).toBe('on\n'))
      await counted('write', async () => await unit.files.write('/root/round', text))
      await counted('read', async () => expect(await unit.files.readText('/root/round')).toBe(text))
      await counted('get', async () => await client.units.get(unit.id))
      await counted('list', async () => await client.units.list())
      if (round % 20 !== 0) continue
      await counted('create and destroy', async () => {
        const made = await client.units.create({ name: `made-${caller}-${round}`, ...nano })
        await made.destroy()
      })
    }
  }
  const working = units.map(work)
  return {
    count: () => count,
    end: async () => {
      isEnding = true
      await Promise.all(working)
      return { failed, count }
    },
  }
}

/** As a load balancer before both: it passes connections to one of those that take them, in turn. */
async function openBalancer(): Promise<{ url: string; close: () => void }> {
  let turn = 0
  const sockets = new Set<Socket>()
  const pass = (incoming: Socket, tries: number) => {
    const server = pair.servers[(turn += 1) % 2] as OneServer
    const { hostname, port } = new URL(server.url)
    const passed = connect(Number(port), hostname)
    sockets.add(incoming).add(passed)
    passed.once('error', () => (tries > 0 ? pass(incoming, tries - 1) : incoming.destroy()))
    passed.once('connect', () => {
      incoming.pipe(passed).pipe(incoming)
      incoming.once('error', () => passed.destroy()).once('close', () => passed.destroy())
      passed.once('close', () => incoming.destroy())
    })
  }
  const front = createServer((incoming) => pass(incoming, 3))
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(front.address() as AddressInfo).port}`,
    close: () => {
      for (const socket of sockets) socket.destroy()
      front.close()
    },
  }
}

it(
  'ten thousand calls succeed while both servers and then a host are replaced, and each unit stays in its run',
  async () => {
    const balancer = await openBalancer()
    const client = new Client({ url: balancer.url, apiKey: pair.key() })
    const make = async (_: unknown, index: number) =>
      await eventually(async () => await client.units.create({ name: `unit-${index}`, ...nano }), 60_000)
    const units: Unit[] = []
    for (let index = 0; index < CALLERS; index += 1) units.push(await make(null, index))
    const runs = async () =>
      await postgres.ask(
        `select id, generation, started_at from units where id in (${units.map(({ id }) => `'${id}'`).join(',')}) order by id`,
      )
    const before = await runs()
    const callers = startCallers(client, units)
    const counts: number[] = []
    const until = async (share: number) => {
      while (callers.count() < CALLS * share) await delay(200)
      counts.push(callers.count())
    }

    const leader = await pair.leader()
    for (const server of [...pair.servers.filter((each) => each !== leader), leader]) {
      await until((counts.length + 1) * 0.2)
      expect(await server.berth.pressCtrlC()).toBe(0)
      await server.berth.start(server.settings)
      await stands(server)
    }
    for (const share of [0.6, 0.8]) {
      await until(share)
      await pair.restartEngine(HOST_AWAY_MS)
    }
    await until(1)
    const { failed, count } = await callers.end()
    balancer.close()
    process.stdout.write(
      `${count} calls, ${failed.length} failed; the updates began at ${counts.join(', ')}\n`,
    )
    expect(failed).toEqual([])
    expect(await runs()).toEqual(before)
  },
  LONG_MS,
)
