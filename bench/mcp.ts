// `npm run bench:mcp`: what a tool call costs over the REST call that it stands for. list_units at /mcp, of either era, and
// GET /v1/units in turn, over kept connections to one server with a Postgres of its own and the engine in memory. Compare the
// figures of one run with each other.

import { Agent, request } from 'node:http'
import { startScratchService } from '../test/support/scratch-service.ts'
import { percentile, timed } from './figures.ts'
import { fillTeam } from './filled-team.ts'
import { cpuSecondsOf } from './service.ts'

const ROUNDS = 300
const WARM_UP = 100
/** A page of the tool, and the same of the route. */
const UNITS = 20

const toolCall = { name: 'list_units', arguments: {} }
const envelope = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}
const accept = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
const message = (params: object) => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })

type Ask = { method: string; path: string; headers: Record<string, string>; body: string }

const asks: Record<string, Ask> = {
  'GET /v1/units': { method: 'GET', path: `/v1/units?limit=${UNITS}`, headers: {}, body: '' },
  'list_units, 2026': {
    method: 'POST',
    path: '/mcp',
    headers: {
      ...accept,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'list_units',
    },
    body: message({ ...toolCall, _meta: envelope }),
  },
  'list_units, 2025': {
    method: 'POST',
    path: '/mcp',
    headers: { ...accept, 'mcp-protocol-version': '2025-11-25' },
    body: message(toolCall),
  },
}

const { db, teamId, key, server, stop } = await startScratchService('bench')
await fillTeam(db, { teamId, units: UNITS, audit: 0, keyIds: [key.id] })
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
try {
  const samples = Object.fromEntries(Object.keys(asks).map((name): [string, number[]] => [name, []]))
  for (let round = 0; round < WARM_UP + ROUNDS; round += 1) {
    for (const [name, ask] of Object.entries(asks)) {
      const into = round < WARM_UP ? [] : (samples[name] ?? [])
      await timed(into, () => send(ask))
    }
  }
  const base = percentile(samples['GET /v1/units'] ?? [], 0.5)
  for (const [name, values] of Object.entries(samples)) {
    const [p50, p99] = [percentile(values, 0.5), percentile(values, 0.99)]
    // Of the server alone: on a busy machine it says more than what a caller waited.
    const before = cpuSecondsOf(server.pid)
    for (let round = 0; round < ROUNDS; round += 1) await send(asks[name] ?? fail(name))
    const cpuMs = ((cpuSecondsOf(server.pid) - before) * 1000) / ROUNDS
    const waits = `p50 ${p50.toFixed(2)} ms (${(p50 - base).toFixed(2)} over REST), p99 ${p99.toFixed(2)} ms`
    console.log(`${name.padEnd(18)} ${waits}, processor time of the server ${cpuMs.toFixed(2)} ms`)
  }
} finally {
  agent.destroy()
  await stop()
}

function fail(name: string): never {
  throw new Error(`nobody knows how to ask for ${name}`)
}

/** Until all of the answer has come. */
async function send({ method, path, headers, body }: Ask): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const all = { ...headers, authorization: `Bearer ${key.secret}` }
  const sent = request(server.baseUrl + path, { method, agent, headers: all }, (response) => {
    if (response.statusCode !== 200) reject(new Error(`${path} answered ${response.statusCode}`))
    response.resume().once('end', resolve).once('error', reject)
  })
  sent.once('error', reject)
  sent.end(body)
  await promise
}
