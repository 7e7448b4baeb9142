// What a unit's requests take beside a unit of another team that attacks the egress process, and without it. Client, attacker,
// host and egress process are processes on loopback; each round is quiet first and attacked then, since only the ratio says
// something on a machine that is shared.

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

const VICTIM = '127.0.0.1'
const REQUESTS = 40
/** Until the loops of an attack are under way. */
const FIRST_REQUESTS = 10

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

export async function measureBeside(rounds: number): Promise<void> {
  const program = new URL('brokered-lab.ts', import.meta.url)
  const lab = fork(program, ['host'])
  const [{ roots }] = (await once(lab, 'message')) as [{ roots: string }]
  const doors = fork(program, ['doors', roots], {
    execArgv: streamFlags,
    env: { ...process.env, ...keptForStreams },
  })
  const [given] = (await once(doors, 'message')) as [{ port: number; authority: string; another: string }]
  const children: ChildProcess[] = [lab, doors]
  try {
    const { port } = given
    const victims = {
      'listed name': { port, servername: 'www.example.com', ca: roots, localAddress: VICTIM },
      'with a secret': { port, servername: 'api.example.com', ca: given.authority, localAddress: VICTIM },
    }
    console.log('| attack | victim | quiet p50 / p95 | attacked p50 / p95 | ratio of p95 |')
    console.log('|---|---|---|---|---|')
    for (const [attack, { from, loops }] of Object.entries(attacks)) {
      const times: Record<string, { quiet: number[]; attacked: number[] }> = {}
      const take = async (kind: 'quiet' | 'attacked') => {
        for (const [name, way] of Object.entries(victims)) {
          const own = (times[name] ??= { quiet: [], attacked: [] })
          for (let each = 0; each < FIRST_REQUESTS; each += 1) await askOnce(way)
          for (let each = 0; each < REQUESTS; each += 1) own[kind].push(await askOnce(way))
        }
      }
      for (let round = 0; round < rounds; round += 1) {
        await take('quiet')
        const way: Way = { port, servername: 'api.example.com', ca: given.another, localAddress: from }
        const attacker = fork(program, ['attack', JSON.stringify({ way, loops })])
        children.push(attacker)
        await once(attacker, 'message')
        await take('attacked')
        attacker.kill('SIGKILL')
        await once(attacker, 'exit')
      }
      for (const [name, { quiet, attacked }] of Object.entries(times)) {
        const [before, during] = [quiet, attacked].map((all) => [percentile(all, 0.5), percentile(all, 0.95)])
        const said = [before, during].map((pair) => (pair ?? []).map((ms) => ms.toFixed(1)).join(' / '))
        const ratio = (during?.[1] ?? 0) / (before?.[1] ?? 1)
        console.log(`| ${attack} | ${name} | ${said[0]} ms | ${said[1]} ms | ${ratio.toFixed(1)} |`)
      }
    }
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
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
