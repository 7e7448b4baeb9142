// Published units behind the real gateway: requested by their URL, put to sleep in both tiers, and woken by a request.

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Exposed } from '../../src/contract/endpoint.ts'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { UnitMetrics } from '../../src/contract/metrics.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { eventually } from '../support/berth.ts'
import { keepsMemory } from '../support/memory-kept.ts'
import { useBerth } from '../support/use-berth.ts'

const run = promisify(execFile)

const berth = useBerth({ BERTH_FROZEN_FOR: '3s' })
/** The CA of this installation. Clients trust it and verify the host name. */
let ca: string

beforeAll(async () => {
  ca = await readFile(berth.credentials.caFile ?? '', 'utf8')
})

type Answer = { status: number; body: string; headers: Record<string, unknown> }

/** Connects to this host, whatever the resolver says, with the name in the URL as the host. */
function visit(url: string, path = '/', host = new URL(url).host): Promise<Answer> {
  const { port } = new URL(url)
  const servername = host.replace(/:\d+$/, '')
  const to = { host: '127.0.0.1', servername, ca, port, path, headers: { host } }
  return new Promise((resolve, reject) => {
    const asked = request(to, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        body += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body, headers: response.headers }))
      response.on('error', reject)
    })
    asked.on('error', reject).end()
  })
}

/** Returns its host name and the number of requests since its start, or a slow response that takes three seconds. */
const PROGRAM = `
import http.server, itertools, os, socket, threading, time
visits = itertools.count(1)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.0'
    def do_GET(self):
        self.send_response(200 if self.path in ('/hello', '/slow', '/count', '/told') else 404)
        self.end_headers()
        if self.path == '/count':
            self.wfile.write(str(next(visits)).encode())
            return
        if self.path == '/told':
            self.wfile.write(f"{self.server.server_port} {os.environ['HOST']}".encode())
            return
        self.wfile.write(socket.gethostname().encode())
        if self.path == '/slow':
            self.wfile.flush()
            time.sleep(3)
            self.wfile.write(b', slowly')
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
threading.Thread(target=Server(('', 8001), Handler).serve_forever).start()
Server(('', 8000), Handler).serve_forever()
`

async function publishServer(mode: 'public' | 'private', name: string): Promise<{ unit: Unit; url: string }> {
  const spec = {
    name,
    image: 'berth.local/python:3.11',
    cmd: ['python3', '/srv/server.py'],
    files: { '/srv/server.py': PROGRAM },
    env: { HOST: '{{self:host}}' },
    ports: [8000, 8001],
    expose: 8000,
  }
  const body = { spec, expose: mode, waitTimeoutMs: 300_000 }
  const answer = await berth.call<RunResult>('POST', '/v1/units', body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  const [unit] = answer.body.units
  const url = answer.body.outputs['URL']
  if (!unit || url === undefined) throw new Error('a create answered no unit, or no URL')
  // Visits wait some seconds for a server that does not listen yet, and Python takes longer on a slow machine.
  await eventually(async () => expect((await visit(url, '/hello')).status).toBe(200))
  return { unit, url }
}

const get = async ({ id }: Unit) => (await berth.call<Unit>('GET', `/v1/units/${id}`)).body
const hasMachine = async ({ id }: Unit) =>
  (await berth.call<UnitMetrics>('GET', `/v1/units/${id}/metrics`)).body.run !== null
const sleepNow = async ({ id }: Unit) => {
  const answer = await berth.call('POST', `/v1/units/${id}/sleep`, { sleep: '10m', now: true })
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
}
const expose = async ({ id }: Unit, body: Record<string, unknown>) => {
  const answer = await berth.call<Exposed>('POST', `/v1/units/${id}/expose`, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body
}

describe('a unit published at its creation', () => {
  it('responds to requests once its server listens', async () => {
    const { url } = await publishServer('public', 'open')
    expect(await visit(url, '/hello')).toMatchObject({ status: 200, body: 'open' })
    expect((await visit(url, '/nothing')).status).toBe(404)
  })

  it('is woken by a request, from a freeze and from the disk, which counts as use', async () => {
    const { unit, url } = await publishServer('private', 'sleeper')
    expect((await visit(url, '/count')).body).toBe('1')
    for (const tier of ['frozen', 'on disk']) {
      await sleepNow(unit)
      expect((await get(unit)).state).toBe('sleeping')
      if (tier === 'on disk') {
        await expect.poll(async () => await hasMachine(unit)).toBe(false)
        await expect.poll(async () => (await get(unit)).memory.kept).toBe(keepsMemory.gvisor)
      }
      const before = Date.now()
      const counted = keepsMemory.gvisor ? '3' : '1'
      const body = tier === 'frozen' ? '2' : counted
      expect(await visit(url, '/count'), tier).toMatchObject({ status: 200, body })
      // A visit is answered before its unit's row is written (decisions/wake.md).
      await expect.poll(async () => (await get(unit)).state, { message: tier }).toBe('running')
      const { lastUsedAt, sleepsAt } = await get(unit)
      expect(Date.parse(lastUsedAt ?? '')).toBeGreaterThan(before - 1000)
      expect(Date.parse(sleepsAt ?? '')).toBeGreaterThan(before + 9 * 60_000)
    }
  })

  it('serves all requests that arrive while it sleeps', async () => {
    const { unit, url } = await publishServer('public', 'crowd')
    await sleepNow(unit)
    const answers = await Promise.all(Array.from({ length: 50 }, () => visit(url, '/hello')))
    for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: 'crowd' })
  })

  it('is not woken by a request without its secret, which gets the 404 of an unknown name', async () => {
    const { unit, url } = await publishServer('private', 'secret')
    const { host } = new URL(url)
    await sleepNow(unit)
    const label = host.split('.')[0] ?? ''
    const guesses = [label.slice(0, -27), `${label.slice(0, -1)}${label.endsWith('a') ? 'b' : 'a'}`, 'secret']
    const unknown = await visit(url, '/hello', host.replace(label, 'nobody-aaaaaaaaaa'))
    expect(unknown.status).toBe(404)
    for (const guess of guesses) {
      const { status, body } = await visit(url, '/hello', host.replace(label, guess))
      expect({ status, body }).toEqual({ status: 404, body: unknown.body })
    }
    expect((await get(unit)).state).toBe('sleeping')
  })

  it('moves to another port under the same URL and is restarted', async () => {
    const { unit, url } = await publishServer('public', 'mover')
    const { hostname } = new URL(url)
    expect((await visit(url, '/told')).body).toBe(`8000 ${hostname}`)
    expect((await visit(url, '/count')).body).toBe('1')
    const moved = await expose(unit, { port: 8001 })
    expect(moved).toMatchObject({ url, port: 8001, warning: expect.stringContaining('restarted') })
    expect((await visit(url, '/told')).body).toBe(`8001 ${hostname}`)
    expect((await visit(url, '/count')).body).toBe('1')
  })

  it('stops responding at its old URL within a second of a rotation and responds at the new one', async () => {
    const { unit, url } = await publishServer('private', 'rotated')
    expect((await visit(url, '/hello')).status).toBe(200)
    const { url: fresh } = await expose(unit, { port: 8000, rotate: true })
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expect((await visit(url, '/hello')).status).toBe(404)
    expect(await visit(fresh, '/hello')).toMatchObject({ status: 200, body: 'rotated' })
  })

  it('cannot be put to sleep during a request', async () => {
    const { unit, url } = await publishServer('public', 'busy')
    const slow = visit(url, '/slow')
    await new Promise((resolve) => setTimeout(resolve, 1000))
    const refused = await berth.call('POST', `/v1/units/${unit.id}/sleep`, { sleep: '10m', now: true })
    expect(refused).toMatchObject({
      status: 409,
      body: { error: { code: 'invalid_state', details: { busy: [unit.id] } } },
    })
    expect(await slow).toMatchObject({ status: 200, body: 'busy, slowly' })
    await eventually(() => sleepNow(unit))
  })

  it('is served while the server is down', async () => {
    const { url } = await publishServer('public', 'steady')
    expect((await visit(url, '/hello')).status).toBe(200)
    const pid = await berth.pidOf('server')
    if (pid !== null) process.kill(pid, 'SIGKILL')
    for (let count = 0; count < 20; count++) expect((await visit(url, '/hello')).status).toBe(200)
    await eventually(async () => expect((await berth.call('GET', '/v1/units')).status).toBe(200))
  })

  it('is woken once the server is back, while the request waits', async () => {
    const { unit, url } = await publishServer('public', 'patient')
    await sleepNow(unit)
    const pid = await berth.pidOf('server')
    if (pid !== null) process.kill(pid, 'SIGKILL')
    expect(await visit(url, '/hello')).toMatchObject({ status: 200, body: 'patient' })
  })
})

describe('the wake socket', () => {
  it('can be opened only by the gateway', async () => {
    const directory = `/run/berth/${(await berth.instance()).id}/server`
    const { stdout } = await run('stat', ['-c', '%a %U %G', directory, `${directory}/wake.sock`])
    expect(stdout).toBe('2710 berth berth-gateway\n660 berth berth-gateway\n')
  })
})
