// What a unit's requests take beside a unit of another team that attacks the egress process, and without it. Client, attacker,
// host and egress process are processes on loopback; each round is quiet first and attacked then, since only the ratio says
// something on a machine that is shared. In between, the same attack goes to a host and an egress process of its own, which shows
// what it costs by the processors alone.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:https'
import { connect } from 'node:tls'
import { keptForStreams, streamFlags } from '../src/supervisor/process-command.ts'
import { percentile } from './figures.ts'

/** Their addresses; any other is the victim's. */
export const BENCH_MACHINES = { manySecrets: '127.0.0.8', oneSecret: '127.0.0.9' } as const

const attacks = {
  'eight loops, 32 secrets of 8,192 characters': { from: BENCH_MACHINES.manySecrets, loops: 8 },
  '128 loops, one secret': { from: BENCH_MACHINES.oneSecret, loops: 128 },
} as const

const program = new URL('brokered-lab.ts', import.meta.url)
const VICTIM = '127.0.0.1'
const REQUESTS = 40
/** Until the loops of an attack are under way. */
const FIRST_REQUESTS = 10
/** Each with an egress process before it. */
const HOSTS = { victims: '127.0.0.2', another: '127.0.0.3' } as const

export type Way = { port: number; servername: string; ca: string; localAddress: string }

export function askOnce(way: Way): Promise<number> {
  return new Promise((resolve, reject) => {
    const since = performance.now()
    const headers = { host: way.servername, 'x-key': 'berth_secret_0123456789abcdef' }
    const createConnection = () => connect({ ...way, host: '127.0.0.1' })
    const asked = request({ ...way, path: '/', headers, agent: false, createConnection })
    asked.once('error', reject)
    asked.once('response', (answer) => {
      answer.resume().once('end', () => resolve(performance.now() - since))
    })
    asked.end()
  })
}

type Kind = 'quiet' | 'apart' | 'attacked'

export async function measureBeside(rounds: number): Promise<void> {
  const children: ChildProcess[] = []
  try {
    const own = await startDoors(HOSTS.victims, children)
    const apart = await startDoors(HOSTS.another, children)
    const victims = {
      'listed name': { ...own.listed, localAddress: VICTIM },
      'with a secret': { ...own.brokered, ca: own.authority, localAddress: VICTIM },
    }
    console.log(
      '| attack | victim | quiet p50 / p95 | attacked p50 / p95 | ratio of p95 | by the processors alone |',
    )
    console.log('|---|---|---|---|---|---|')
    for (const [attack, { from, loops }] of Object.entries(attacks)) {
      const times: Record<string, Record<Kind, number[]>> = {}
      const take = async (kind: Kind) => {
        for (const [name, way] of Object.entries(victims)) {
          const taken = (times[name] ??= { quiet: [], apart: [], attacked: [] })
          for (let each = 0; each < FIRST_REQUESTS; each += 1) await askOnce(way)
          for (let each = 0; each < REQUESTS; each += 1) taken[kind].push(await askOnce(way))
        }
      }
      for (let round = 0; round < rounds; round += 1) {
        await take('quiet')
        for (const [kind, doors] of [
          ['apart', apart],
          ['attacked', own],
        ] as const) {
          // There too the attacker's team is not alone.
          await askOnce({ ...doors.listed, localAddress: VICTIM })
          const way: Way = { ...doors.brokered, ca: doors.another, localAddress: from }
          const attacker = fork(program, ['attack', JSON.stringify({ way, loops })])
          children.push(attacker)
          await once(attacker, 'message')
          await take(kind)
          attacker.kill('SIGKILL')
          await once(attacker, 'exit')
        }
      }
      for (const [name, own] of Object.entries(times))
        console.log(`| ${attack} | ${name} | ${cellsOf(own)} |`)
    }
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
}

/** A host with an egress process before it, and how both of its names are asked for. */
async function startDoors(host: string, children: ChildProcess[]) {
  const env = { ...process.env, BENCH_HOST: host }
  const lab = fork(program, ['host'], { env })
  children.push(lab)
  const [{ roots }] = (await once(lab, 'message')) as [{ roots: string }]
  const doors = fork(program, ['doors', roots], { execArgv: streamFlags, env: { ...env, ...keptForStreams } })
  children.push(doors)
  const [given] = (await once(doors, 'message')) as [{ port: number; authority: string; another: string }]
  const { port, authority, another } = given
  const listed = { port, servername: 'www.example.com', ca: roots }
  return { authority, another, listed, brokered: { port, servername: 'api.example.com' } }
}

function cellsOf({ quiet, apart, attacked }: Record<Kind, number[]>): string {
  const ms = (all: number[]) => `${percentile(all, 0.5).toFixed(1)} / ${percentile(all, 0.95).toFixed(1)} ms`
  const ratio = (all: number[]) => (percentile(all, 0.95) / percentile(quiet, 0.95)).toFixed(1)
  return [ms(quiet), ms(attacked), ratio(attacked), ratio(apart)].join(' | ')
}

/** In a process of its own. Says once that its loops have had their first answers. */
export async function attack({ way, loops }: { way: Way; loops: number }): Promise<void> {
  let answered = 0
  const loop = async () => {
    for (;;) {
      await askOnce(way).catch(() => {})
      answered += 1
      if (answered === 8) process.send?.('under way')
    }
  }
  await Promise.all(Array.from({ length: loops }, loop))
}
