// `npm run bench:brokered`: requests to a host directly, by a listed name, and with a brokered secret, in turn. Client, host
// and egress process are three processes on loopback, so it says what the doors cost, and nothing of the firewall.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:https'
import { loadavg } from 'node:os'
import { connect } from 'node:tls'
import { parseArgs } from 'node:util'
import { keptForStreams, streamFlags } from '../src/supervisor/process-command.ts'
import { percentile } from './figures.ts'
import { cpuSecondsOf } from './service.ts'

const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '4' }, requests: { type: 'string', default: '60' } },
})
const [rounds, requests] = [Number(options.rounds), Number(options.requests)]

const program = new URL('brokered-lab.ts', import.meta.url)
const lab = fork(program, ['host'])
const [{ roots }] = (await once(lab, 'message')) as [{ roots: string }]
const doors = fork(program, ['doors', roots], {
  execArgv: streamFlags,
  env: { ...process.env, ...keptForStreams },
})
const [{ port, authority }] = (await once(doors, 'message')) as [{ port: number; authority: string }]

const ways = {
  directly: { host: '127.0.0.2', port: 443, servername: 'api.example.com', ca: roots },
  listed: { host: '127.0.0.1', port, servername: 'www.example.com', ca: roots },
  'with a secret': { host: '127.0.0.1', port, servername: 'api.example.com', ca: authority },
}
type Way = (typeof ways)[keyof typeof ways]

function ask(way: Way, path = '/'): Promise<number> {
  return new Promise((resolve, reject) => {
    const since = performance.now()
    const headers = { host: way.servername, 'x-key': 'berth_secret_0123456789abcdef' }
    const asked = request({ ...way, path, headers, agent: false, createConnection: () => connect(way) })
    asked.once('error', reject)
    asked.once('response', (answer) => {
      answer.resume().once('end', () => resolve(performance.now() - since))
    })
    asked.end()
  })
}

console.log(`load ${loadavg()[0]?.toFixed(1)} at the beginning`)
for (let round = 0; round < rounds; round += 1)
  for (const [name, way] of Object.entries(ways)) {
    const times: number[] = []
    const used = cpuSecondsOf(doors.pid ?? 0)
    for (let each = 0; each < requests; each += 1) times.push(await ask(way))
    const ms = ((cpuSecondsOf(doors.pid ?? 0) - used) / requests) * 1000
    const taken = await ask(way, '/give')
    const more = cpuSecondsOf(doors.pid ?? 0) - used - (ms * requests) / 1000
    console.log(
      `${name}: new connection ${percentile(times, 0.5).toFixed(1)} / ${percentile(times, 0.95).toFixed(1)} ms, ${ms.toFixed(1)} ms of a processor; 256 MB at ${(256_000 / taken).toFixed(0)} MB/s, ${(more * 4).toFixed(1)} s of a processor for each GB`,
    )
  }
console.log(`load ${loadavg()[0]?.toFixed(1)} at the end`)
for (const child of [lab, doors]) child.kill('SIGKILL')
