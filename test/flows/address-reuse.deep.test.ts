// One address with two owners in turn (reliability I10): nothing that was open or cached for the first leads to the second,
// even though the second has the same address, port and unit name.

import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { withDatabase } from '../support/host-invariants.ts'
import { eventually } from '../support/berth.ts'
import { restartRole } from '../support/kill.ts'
import { type Published, publish } from '../support/published.ts'
import { useBerth } from '../support/use-berth.ts'

/** Returns the name of its owner: as a page on port 8000, and for every line on port 6379. */
const PROGRAM = `
import http.server, os, socketserver, threading
NAME = os.environ['OWNER'].encode()
class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        self.send_response(200)
        self.send_header('content-length', str(len(NAME)))
        self.end_headers()
        self.wfile.write(NAME)
class Line(socketserver.StreamRequestHandler):
    def handle(self):
        for _ in self.rfile: self.wfile.write(NAME + b'\\n')
class Lines(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
threading.Thread(target=Lines(('', 6379), Line).serve_forever).start()
http.server.ThreadingHTTPServer(('', 8000), Page).serve_forever()
`
const ROUNDS = 500

const berth = useBerth({ BERTH_ISOLATION: 'runc' })
let ca: string

beforeAll(async () => {
  ca = await readFile(berth.credentials.caFile ?? '', 'utf8')
})
type Owned = { unit: Unit; page: Published; lines: Published }

async function makeOwner(owner: string): Promise<Owned> {
  const spec = {
    name: 'shop',
    image: 'berth.local/python:3.11',
    size: 'nano',
    cmd: ['python3', '/srv/owner.py'],
    files: { '/srv/owner.py': PROGRAM },
    env: { OWNER: owner },
    ports: [8000, 6379],
  }
  const page = await publish(berth, spec, { port: 8000, protocol: 'http', mode: 'public' })
  const { unit } = page
  const body = { port: 6379, protocol: 'redis', mode: 'public' }
  const answer = await berth.call<{ url: string }>('POST', `/v1/units/${unit.id}/expose`, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  const { hostname, port } = new URL(answer.body.url)
  return { unit, page, lines: { unit, url: answer.body.url, host: hostname, port: Number(port) } }
}

function visit(agent: Agent, { host, port }: Published): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const to = { agent, host: '127.0.0.1', port, servername: host, headers: { host }, ca }
    const asked = request(to, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
      response.on('error', reject)
    })
    asked.on('error', reject).end()
  })
}

function openLine({ host, port }: Published): { socket: TLSSocket; said: () => string } {
  const socket = connect({ host: '127.0.0.1', port, servername: host, ca })
  let said = ''
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    said += chunk.toString()
  })
  return { socket, said: () => said }
}

const addressOf = async ({ id }: Unit) =>
  (
    await withDatabase(await berth.instance(), (db) =>
      db.selectFrom('units').select('address').where('id', '=', id).executeTakeFirst(),
    )
  )?.address ?? ''

/** Makes the next engine allot this address first. */
async function giveNext(address: string): Promise<void> {
  const [, , high = 0, low = 0] = address.split('.').map(Number)
  const file = join(berth.dataDir, 'network', 'network.json')
  const notes = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>
  await writeFile(file, JSON.stringify({ ...notes, turn: high * 256 + low }))
  await restartRole(berth, 'engine')
}

describe('a reused address', () => {
  it('never leads clients of the old owner to the new one, even over connections kept open', async () => {
    const agent = new Agent({ keepAlive: true })
    const first = await makeOwner('first')
    const address = await addressOf(first.unit)
    await eventually(async () =>
      expect(await visit(agent, first.page)).toEqual({ status: 200, body: 'first' }),
    )
    const line = openLine(first.lines)
    line.socket.write('ping\r\n')
    await eventually(async () => expect(line.said()).toBe('first\n'))

    expect((await berth.call('DELETE', `/v1/units/${first.unit.id}`)).status).toBe(200)
    await giveNext(address)
    const second = await eventually(() => makeOwner('second'))
    expect(await addressOf(second.unit)).toBe(address)
    await eventually(async () => expect((await visit(agent, second.page)).body).toBe('second'))

    const seen = { first: new Set<string>(), second: new Set<string>() }
    for (let round = 0; round < ROUNDS; round += 1) {
      const [old, current] = await Promise.all([visit(agent, first.page), visit(agent, second.page)])
      seen.first.add(`${old.status} ${old.body.includes('second')}`)
      seen.second.add(`${current.status} ${current.body}`)
      if (!line.socket.destroyed) line.socket.write('ping\r\n')
    }
    expect([...seen.first]).toEqual(['404 false'])
    expect([...seen.second]).toEqual(['200 second'])
    if (!line.socket.closed) await once(line.socket, 'close')
    expect(line.said()).not.toContain('second')
    agent.destroy()
  })
})
