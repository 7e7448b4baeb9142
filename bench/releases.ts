// sudo node bench/releases.ts CHECKOUT [creates] [execs]
//
// This release beside another one, which lies in CHECKOUT with its node_modules: create, exec, wake and visit in turn, each
// with a Berth of its own on this machine.

import { Agent, get } from 'node:https'
import { text } from 'node:stream/consumers'
import { readFile } from 'node:fs/promises'
import { Berth, makeDataDir } from '../test/support/berth.ts'
import { type Caller, callerOf } from './caller.ts'
import { endBerths } from './end-berths.ts'
import { headOf, inTurn, lineOf, timed } from './in-turn.ts'

const [checkout, ...counts] = process.argv.slice(2)
const [creates = 40, execs = 500] = counts.map(Number)
if (checkout === undefined)
  throw new Error('say where the other release lies: node bench/releases.ts CHECKOUT')

const datas = [await makeDataDir(), await makeDataDir()] as const
const berths = [new Berth(datas[0].path, checkout), new Berth(datas[1].path)] as const
const callers: Caller[] = []
type Side = { caller: Caller; unit: string; visit: () => Promise<number> }

try {
  const [before, now] = [await sideOf(berths[0]), await sideOf(berths[1])]
  console.log(headOf('before', 'now'))
  const run = async (what: string, rounds: number, work: (side: Side) => Promise<number>) => {
    const pair = await inTurn(rounds, { one: () => work(before), other: () => work(now) })
    console.log(lineOf(`${what} (${rounds})`, pair))
  }
  await run('create', creates, ({ caller }) => caller.timeCreate())
  await run('exec', execs, ({ caller, unit }) => caller.timeExec(unit))
  await run('wake', creates, ({ caller, unit }) => caller.timeWake(unit))
  await run('visit', execs, ({ visit }) => visit())
} finally {
  await endBerths(callers, [
    { berth: berths[0], data: datas[0] },
    { berth: berths[1], data: datas[1] },
  ])
}

async function sideOf(berth: Berth): Promise<Side> {
  await berth.start({ BERTH_ISOLATION: process.env['BERTH_ISOLATION'] ?? 'runc' })
  const { baseUrl, apiKey, caFile } = berth.credentials
  const caller = callerOf({ baseUrl, key: apiKey })
  callers.push(caller)
  const [{ id }] = (await caller.create()).units
  const url = await caller.createServer()
  const agent = new Agent({ keepAlive: true, ...(caFile ? { ca: await readFile(caFile) } : {}) })
  const once = async () =>
    await new Promise<string>((resolve, reject) => {
      // Its name is one for DNS to know.
      const at = {
        host: '127.0.0.1',
        port: url.port,
        servername: url.hostname,
        headers: { host: url.host },
        agent,
      }
      get(at, (response) => void text(response).then(resolve, reject)).once('error', reject)
    })
  return { caller, unit: id, visit: async () => await timed(once) }
}
