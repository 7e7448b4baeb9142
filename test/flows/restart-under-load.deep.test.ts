// The server is stopped and killed while visits arrive at a steady rate and API callers retry: no visit to a running unit
// fails (reliability F27), and afterwards every caller has a response and no work is left over (reliability L3). `npm test`
// uses a tenth of the load and a shorter outage.

import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, expect, it } from 'vitest'
import { createUnit, listUnits } from '../support/berth-units.ts'
import { eventually } from '../support/berth.ts'
import { expectInvariants } from '../support/host-invariants.ts'
import { isDeep } from '../support/part-of.ts'
import { callPatiently } from '../support/patient-client.ts'
import { publish } from '../support/published.ts'
import { useBerth } from '../support/use-berth.ts'

const VISITS_A_SECOND = isDeep ? 200 : 20
const CALLERS = isDeep ? 50 : 10
const OUTAGE_MS = isDeep ? 60_000 : 5_000
const DRAINED_WITHIN_MS = 120_000
const LONG_MS = 600_000
/** A new connection per request, so that no keep-alive connection can hide a failure. */
const agent = false

const rates = { BERTH_RATE_REQUESTS: '1000000', BERTH_RATE_EXECS: '1000000' }
const berth = useBerth({ BERTH_ISOLATION: 'runc', ...rates })

let ca: string

beforeAll(async () => {
  ca = await readFile(berth.credentials.caFile ?? '', 'utf8')
})

function visit(host: string): Promise<number | string> {
  const [servername = '', port] = host.split(':')
  const to = { host: '127.0.0.1', port, servername, ca, path: '/', headers: { host }, agent }
  return new Promise((resolve) => {
    const asked = request(to, (answer) => {
      answer.resume().once('end', () => resolve(answer.statusCode ?? 0))
    })
    asked.on('error', (error) => resolve(error.message)).end()
  })
}

/** Visits at a steady rate until stopped; returns the count of each outcome. */
function visitSteadily(host: string): { stop(): Promise<Map<number | string, number>> } {
  const outcomes = new Map<number | string, number>()
  const underWay = new Set<Promise<void>>()
  const timer = setInterval(() => {
    const one: Promise<void> = visit(host).then((outcome) => {
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      underWay.delete(one)
    })
    underWay.add(one)
  }, 1000 / VISITS_A_SECOND)
  return {
    stop: async () => {
      clearInterval(timer)
      await Promise.all(underWay)
      return outcomes
    },
  }
}

const signalServer = async (signal: NodeJS.Signals) => {
  const pid = await berth.pidOf('server')
  if (pid !== null) process.kill(pid, signal)
}

it(
  'no visit fails and every API caller eventually gets a response while the server is killed repeatedly',
  async () => {
    const spec = {
      name: 'site',
      image: 'berth.local/nginx:1.22',
      cmd: ['nginx'],
      ports: [80],
      sleep: 'never',
    }
    const { unit, url } = await publish(berth, spec, { port: 80, protocol: 'http', mode: 'public' })
    const other = await createUnit(berth, { name: 'other', image: 'berth.local/debian:12', sleep: 'never' })
    const { host } = new URL(url)
    await eventually(async () => expect(await visit(host)).toBe(200))

    const visits = visitSteadily(host)
    const away = new AbortController()
    const callers = Array.from({ length: CALLERS }, async () => {
      const statuses: number[] = []
      while (!away.signal.aborted) {
        const call = { method: 'POST', path: `/v1/units/${other.id}/exec`, body: { cmd: ['true'] } }
        statuses.push((await callPatiently(berth, call, OUTAGE_MS + DRAINED_WITHIN_MS)).status)
      }
      return statuses
    })
    await signalServer('SIGTERM')
    // During the outage every new server process is killed.
    for (const until = Date.now() + OUTAGE_MS; Date.now() < until; await delay(200))
      await signalServer('SIGKILL')
    const backMs = Date.now()
    await eventually(async () => expect((await berth.call('GET', '/v1/units')).status).toBe(200), LONG_MS)
    away.abort()
    const statuses = (await Promise.all(callers)).flat()
    expect(Date.now() - backMs).toBeLessThan(DRAINED_WITHIN_MS)
    // An interrupted exec may be reported as such, but no response says that it never ran.
    for (const status of new Set(statuses)) expect([200, 409]).toContain(status)

    const outcomes = await visits.stop()
    expect([...outcomes.keys()]).toEqual([200])
    expect(outcomes.get(200)).toBeGreaterThan(0)
    const states = new Map((await listUnits(berth)).map(({ id, state }) => [id, state]))
    expect(states).toEqual(new Map([unit, other].map(({ id }) => [id, 'running'])))
    await expectInvariants(berth)
  },
  LONG_MS * 2,
)
